#pragma once

#include <imgui.h>

#include <functional>
#include <vector>

#include "analysis/figure.h"
#include "app/gui/figure/figure_plot.h"

namespace kvscope::gui {

/// Where a panel stands. Pixels; places are from the upper left of the room.
struct PanelPlace {
    ImVec2 at;               ///< of its data area
    ImVec2 size;             ///< of its data area
    float left = 0;          ///< for the labels of y, which stand before it
    bool carries_x = false;  ///< has labels of x below it
    bool carries_y = false;
};

struct PanelLayout {
    std::vector<PanelPlace> panels;  ///< in the figure's order
    bool has_titles = false;
    float title = 0;   ///< height above each data area, also for half a label where there are no titles
    float height = 0;  ///< of all; more than the room where they have to be scrolled to
};

/// The panels of a figure in a room: small multiples in as many columns as make them largest, others where the figure
/// or the look says, at least as large as can be read.
/// @param shown_y the axis of a panel's y as it is zoomed: its labels take room
PanelLayout lay_out_panels(const analysis::Figure& figure, const FigureLook& look, ImVec2 room,
                           const std::function<analysis::Axis(size_t panel)>& shown_y);

/// The part of a data area in which a unit of x is as long as one of y.
ImVec2 squared(const analysis::Panel& panel, ImVec2 size);

}  // namespace kvscope::gui
