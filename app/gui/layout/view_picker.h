#pragma once

#include <string>
#include <vector>

#include "app/gui/drawing/theme.h"
#include "app/gui/layout/open_views.h"
#include "app/gui/view/action_registry.h"

namespace kvscope::gui {

/// Panel with a sketch, title and summary of each kind of view that matches the search. Enter or a click shows the open
/// view of this kind or, if none is open, opens a view. Shift+Enter and Shift+click always open another view.
class ViewPicker {
 public:
    void open() { is_wanted_ = true; }
    void draw(Actions& actions, const OpenViews& views, const Theme& theme, const Fonts& fonts);

 private:
    [[nodiscard]] const ViewKind* draw_kinds(const OpenViews& views, const Theme& theme, const Fonts& fonts);
    void take_arrow_keys(const std::vector<const ViewKind*>& found, int n_columns);
    void draw_footer(const Theme& theme) const;

    bool is_wanted_ = false;
    std::string search_;
    const ViewKind* chosen_ = nullptr;  ///< kind that Enter chooses
    bool follows_chosen_ = false;       ///< whether to scroll to the chosen kind in the next frame
};

}  // namespace kvscope::gui
