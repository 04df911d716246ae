#pragma once

#include <imgui.h>

#include <limits>

#include "app/gui/figure/figure_shapes.h"

namespace kvscope::gui {

/// What is under the mouse in a drawn figure; indices are −1 for nothing.
struct FigureHit {
    int panel = -1;  ///< index into Figure::panels
    double x = 0;
    double y = 0;
    int shape = -1;   ///< index in the panel: the curve, bars or points near the mouse, else the map under it
    int point = -1;   ///< index in a curve, bars or points
    int row = -1;     ///< of a map's cell
    int column = -1;  ///< of a map's cell
    /// Subject of the curve's point or the map's cell, else of the panel's position.
    analysis::Subject subject;
    analysis::Subject other;  ///< the column's, if row and column count the same thing; else equal to `subject`
    float value = std::numeric_limits<float>::quiet_NaN();  ///< value of the map's cell
    bool clicked = false;                                   ///< released without dragging
};

/// Finds what is under the mouse in a panel. @param hit its x and y must be set
void find_hit(const analysis::Panel& panel, const PlotFrame& frame, ImVec2 mouse, FigureHit& hit);

}  // namespace kvscope::gui
