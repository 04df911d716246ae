#pragma once

#include <string>

#include "app/gui/session/lifetime.h"
#include "app/gui/session/tasks.h"
#include "app/gui/shell/notices.h"
#include "app/gui/shell/open_view.h"
#include "app/gui/shell/window.h"

namespace kvscope::gui {

/// Copies a view as it is seen: a part of the window's picture, as an image on the clipboard.
class ViewPicture {
 public:
    ViewPicture(Window& window, Tasks& tasks, Notices& notices) : window_(window), tasks_(tasks), notices_(notices) {}

    /// The picture is taken some frames later, when the menu is gone that asked for it.
    void ask_for(const OpenView& open);
    /// Once a frame for each view, between ImGui::Begin and End of its window: takes the picture if it is of this view.
    void take_if_wanted(const OpenView& open);

 private:
    void take();

    Window& window_;
    Tasks& tasks_;
    Notices& notices_;
    std::string wanted_;      ///< the view's id; empty: none
    int frames_to_wait_ = 0;  ///< until its menu is gone
    Lifetime lifetime_;       ///< the window hands over pixels when the frame is drawn, maybe after this is gone
};

}  // namespace kvscope::gui
