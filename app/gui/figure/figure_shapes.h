#pragma once

#include <imgui.h>

#include <span>
#include <string>

#include "analysis/figure.h"
#include "app/gui/drawing/ground_colors.h"
#include "app/gui/drawing/heat_map.h"
#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Where a panel's data stand on the screen.
struct PlotFrame {
    ImVec2 min;
    ImVec2 max;
    analysis::Axis x_axis;  ///< with the limits that are shown
    analysis::Axis y_axis;

    float x_of(double x) const;
    float y_of(double y) const;
    double x_at(float pixel) const;
    double y_at(float pixel) const;
};

/// Draws one shape of a panel. @param map of a heat map or of classes; @param weight 1 as it is, above accented (above
/// 2 with a rim), below faint
void draw_shape(const Theme& theme, const analysis::Figure& figure, const analysis::Shape& shape, const HeatMap* map,
                const PlotFrame& frame, float weight, ImDrawList* list);

/// A line between two points in the style's dash, as legends show it.
void draw_stroke(const Theme& theme, const analysis::LineStyle& style, std::span<const ImVec2> points, float weight,
                 ImDrawList* list);

/// The upper edge of a horizontal line's label: above the line, where it would leave the panel below it.
float top_of_label(const PlotFrame& frame, float line, float height);

/// The map and range of a scale for the shader.
MapColors map_colors(const analysis::ColorScale& scale, const Theme& theme);

/// "Coverage (% of tokens)"
std::string title_of(const analysis::Axis& axis);

/// A vertical line for a selected or hovered place of a panel's x axis.
void draw_column_mark(const PlotFrame& frame, ImDrawList* list, double x, ImU32 color);

/// The same for the selected and the hovered layer, where x counts layers; −1: none.
void draw_layer_marks(const Theme& theme, const PlotFrame& frame, ImDrawList* list, int selected, int hovered);

/// The outline of a map's cell; `half` is half a cell.
void draw_cell_mark(const PlotFrame& frame, ImDrawList* list, double x, double y, ImU32 color);

}  // namespace kvscope::gui
