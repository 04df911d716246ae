#pragma once

#include <imgui.h>

#include <functional>
#include <vector>

#include "analysis/drawing/figure.h"
#include "app/gui/figure/figure_plot.h"

namespace kvscope::gui {

struct PanelPlace {
    ImVec2 at;               ///< upper left corner of the data area
    ImVec2 size;             ///< size of the data area
    float left = 0;          ///< width for the y labels to the left
    bool carries_x = false;  ///< whether x labels are drawn below
    bool carries_y = false;
};

struct PanelLayout {
    std::vector<PanelPlace> panels;  ///< in the figure's order
    bool has_titles = false;
    float title = 0;   ///< height above each data area; half a label without titles
    float height = 0;  ///< total height; panels scroll if it exceeds the available space
};

/// Lays out panels of at least a minimum size. Small multiples are arranged so that their panels are largest.
/// @param shown_y returns the visible y axis of a panel, whose labels need space
[[nodiscard]] PanelLayout lay_out_panels(const analysis::Figure& figure, const FigureLook& look, ImVec2 room,
                                         const std::function<analysis::Axis(size_t panel)>& shown_y);

[[nodiscard]] ImVec2 size_with_equal_scales(const analysis::Panel& panel, ImVec2 size);

}  // namespace kvscope::gui
