#pragma once

#include <string>
#include <vector>

#include "app/gui/drawing/theme.h"
#include "app/gui/shell/open_views.h"
#include "app/gui/view/actions.h"

namespace kvscope::gui {

/// A panel with a picture, the title and the summary of every kind of view, which what is typed narrows down. Enter or
/// a click shows the view where one is open and opens it where none is; with Shift it opens a further one.
class ViewPicker {
 public:
    void open() { is_wanted_ = true; }
    /// Once a frame. @param actions those called "Show …" and "New view: …" do what is chosen
    void draw(Actions& actions, const OpenViews& views, const Theme& theme, const Fonts& fonts);

 private:
    /// @returns the kind that was chosen by a click or Enter; nullptr: none in this frame
    const ViewKind* draw_kinds(const OpenViews& views, const Theme& theme, const Fonts& fonts);
    void take_arrow_keys(const std::vector<const ViewKind*>& found, int n_columns);
    void draw_footer(const Theme& theme) const;

    bool is_wanted_ = false;
    std::string search_;
    const ViewKind* chosen_ = nullptr;  ///< what Enter takes
    bool follows_chosen_ = false;       ///< scrolls to it in the next frame
};

}  // namespace kvscope::gui
