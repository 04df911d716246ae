#pragma once

#include <imgui.h>

#include <limits>

#include "app/gui/figure/figure_shapes.h"

namespace kvscope::gui {

/// What the mouse is over in a drawn figure; −1 where it is over nothing of the kind.
struct FigureHit {
    int panel = -1;  ///< index into Figure::panels
    double x = 0;
    double y = 0;
    int shape = -1;   ///< of the panel: the curve, bar or point beside the mouse, else the map under it
    int point = -1;   ///< of a curve, bars or points
    int row = -1;     ///< of a map
    int column = -1;  ///< of a map
    /// What is there: a curve's point or a map's cell with what its axes count, else what the panel's axes count.
    analysis::Subject subject;
    analysis::Subject other;  ///< of a cell whose row and column count the same the column's, else as `subject`
    float value = std::numeric_limits<float>::quiet_NaN();  ///< of the map's cell
    bool clicked = false;                                   ///< and not dragged
};

/// What of a panel the mouse is over. @param hit with x and y set
void find_hit(const analysis::Panel& panel, const PlotFrame& frame, ImVec2 mouse, FigureHit& hit);

}  // namespace kvscope::gui
