#pragma once

#include <imgui.h>

#include <span>
#include <string>

#include "analysis/drawing/figure.h"
#include "app/gui/drawing/heat_map.h"
#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

struct PlotFrame {
    ImVec2 min;
    ImVec2 max;
    analysis::Axis x_axis;  ///< limited to the visible range
    analysis::Axis y_axis;

    [[nodiscard]] float x_of(double x) const;
    [[nodiscard]] float y_of(double y) const;
    [[nodiscard]] double x_at(float pixel) const;
    [[nodiscard]] double y_at(float pixel) const;
};

/// Draws a shape without the band of a line. @param map levels of detail, if the shape is a map @param weight see
/// FigureLook::weight
void draw_shape(const Theme& theme, const analysis::Figure& figure, const analysis::Shape& shape, const HeatMap* map,
                const PlotFrame& frame, float weight, ImDrawList* list);

/// Draws the band of a line; nothing for other shapes. The bands of a panel precede its shapes, to cover no line.
void draw_band(const Theme& theme, const analysis::Figure& figure, const analysis::Shape& shape, const PlotFrame& frame,
               float weight, ImDrawList* list);

void draw_styled_polyline(const Theme& theme, const analysis::LineStyle& style, std::span<const ImVec2> points,
                          float weight, ImDrawList* list);

/// Returns the top of a line's label: above the line, or below it if the label would leave the panel.
[[nodiscard]] float top_of_label(const PlotFrame& frame, float line, float height);

[[nodiscard]] MapColors make_map_colors(const analysis::ColorScale& scale, const Theme& theme);

/// Returns an axis title with its unit, such as "Coverage (% of tokens)".
[[nodiscard]] std::string axis_title_with_unit(const analysis::Axis& axis);

void draw_column_mark(const PlotFrame& frame, ImDrawList* list, double x, ImU32 color);

[[nodiscard]] bool has_map(const analysis::Panel& panel);

}  // namespace kvscope::gui
