#pragma once

#include <imgui.h>

#include <limits>
#include <optional>

#include "app/gui/figure/figure_shapes.h"
#include "app/gui/session/selection.h"

namespace kvscope::gui {

/// Part of a drawn figure under the mouse. The index of a missing part is −1.
struct FigureHit {
    int panel = -1;  ///< index into Figure::panels
    double x = 0;
    double y = 0;
    int shape = -1;  ///< index of the curve, bars or points near the mouse, or of the map
    int point = -1;  ///< index in a curve, bars or points
    int row = -1;
    int column = -1;
    /// Subject of the curve's point or the map's cell. Elsewhere, the subject of the position in the panel.
    analysis::Subject subject;
    analysis::Subject
        other;  ///< subject of the column, if rows and columns have the same subjects; otherwise `subject`
    std::optional<Cursor> over;  ///< the subject's position, or nullopt if its trace was closed
    float value = std::numeric_limits<float>::quiet_NaN();  ///< value of the map's cell
    bool clicked = false;                                   ///< released without dragging
};

/// Finds the shape, point or cell under the mouse. @param hit its x and y must be set
void find_hit(const analysis::Panel& panel, const PlotFrame& frame, ImVec2 mouse, FigureHit& hit);

}  // namespace kvscope::gui
