#pragma once

#include <imgui.h>

#include <string>

#include "analysis/drawing/ticks.h"
#include "app/gui/figure/figure_shapes.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

inline constexpr float small_text = 0.87f;  ///< font size of tick labels and panel titles, relative to normal text

[[nodiscard]] ImVec2 measure_small_text(const std::string& text);
/// Shows `whole` as a tooltip over the shortened text `shown`. Does nothing if `whole` is empty.
void draw_full_text_tooltip(ImVec2 at, const std::string& shown, const std::string& whole);

void draw_small_text(ImDrawList* list, ImVec2 at, ImU32 color, const std::string& text);

/// Returns ticks with labels that do not overlap. @param width length of the axis in pixels
[[nodiscard]] analysis::Ticks x_ticks(const analysis::Axis& axis, float width);
[[nodiscard]] analysis::Ticks y_ticks(const analysis::Axis& axis, float height);
[[nodiscard]] float widest_label(const analysis::Ticks& ticks);

/// Returns the lower end of a vertical title, centered between `from` and `to` but kept between `top` and `bottom`.
[[nodiscard]] float lower_end_of_y_axis_title(float from, float to, float length, float top, float bottom);

void draw_ticks(const Context& context, const PlotFrame& frame, bool x_labels, bool y_labels, float y_title_x);
void draw_grid_lines(const Theme& theme, const PlotFrame& frame, ImDrawList* list);

}  // namespace kvscope::gui
