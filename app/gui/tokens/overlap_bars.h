#pragma once

#include <imgui.h>

#include <vector>

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// How much of what either run keeps both keep, a bar for each layer, beside a token map's rows. A click selects the
/// layer, dragging and ↑ ↓ go through the layers, the wheel zooms the shares about the mouse, a double click shows all.
class OverlapBars {
 public:
    /// @param overlap (L), Jaccard indices; @param size as high as the map; the axis' numbers stand below it, on the
    /// line
    ///        of the map's own
    void draw(Context& context, const std::vector<double>& overlap, ImVec2 size);
    void fit() { from_ = 0, to_ = 1; }

 private:
    void zoom(double at);
    void draw_axis(const Context& context, ImVec2 from, ImVec2 to) const;

    double from_ = 0;  ///< shares in view
    double to_ = 1;
};

}  // namespace kvscope::gui
