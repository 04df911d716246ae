#pragma once

#include <imgui.h>

#include <vector>

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Bars next to a token map that show the overlap of two runs' kept sets in each layer. A click or a drag selects a
/// layer, the wheel zooms, and a double click resets the zoom.
class OverlapBars {
 public:
    /// @param overlap Jaccard index of each layer @param size must have the height of the token map
    void draw(Context& context, const std::vector<double>& overlap, ImVec2 size);
    void fit() { from_ = 0, to_ = 1; }

 private:
    void zoom(double at);
    void draw_axis(const Context& context, ImVec2 from, ImVec2 to) const;

    double from_ = 0;  ///< lower end of the visible range; `to_` is the upper end
    double to_ = 1;
};

}  // namespace kvscope::gui
