#pragma once

#include <string>

#include "app/gui/layout/open_view.h"
#include "app/gui/session/callback_guard.h"
#include "app/gui/session/tasks.h"
#include "app/gui/window/notices.h"
#include "app/gui/window/window.h"

namespace kvscope::gui {

class ViewPicture {
 public:
    ViewPicture(Window& window, Tasks& tasks, Notices& notices) : window_(window), tasks_(tasks), notices_(notices) {}

    /// Requests a copy, which is made a few frames later when the menu has closed.
    void ask_for(const OpenView& open);
    /// Copies the view if requested. Call once per frame for each view, between ImGui::Begin and End.
    void take_if_wanted(const OpenView& open);

 private:
    void take();

    Window& window_;
    Tasks& tasks_;
    Notices& notices_;
    std::string wanted_;      ///< id of the view to copy; empty: none
    int frames_to_wait_ = 0;  ///< remaining frames until the menu has closed
    Lifetime lifetime_;       ///< guards the callback, which may run after this object is destroyed
};

}  // namespace kvscope::gui
