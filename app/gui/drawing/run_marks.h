#pragma once

#include <imgui.h>

#include "analysis/drawing/figure.h"
#include "app/gui/drawing/theme.h"

/// A mark's color shows the policy, and its shape or fill shows the budget.
namespace kvscope::gui {

/// Returns the pixels per point (1/72 inch) of line widths and markers at the present text size.
[[nodiscard]] float pixels_per_point();

/// Whether a color is so pale that it needs an outline on this background.
[[nodiscard]] bool wants_rim(const Theme& theme, analysis::Rgb color);
[[nodiscard]] ImU32 rim_of(analysis::Rgb color, float alpha);

/// @param size diameter in pixels
void draw_marker(const Theme& theme, analysis::Marker marker, ImVec2 at, float size, const analysis::MarkColor& color,
                 float alpha, ImDrawList* list);

/// Draws a run's marker in a square of size `side`. @param is_filled false draws only the outline, for hidden runs
void draw_run_marker(const Theme& theme, const analysis::LineStyle& style, ImVec2 from, float side, ImDrawList* list,
                     bool is_filled = true);

/// Adds the marker to a line of text. @param height height of the line, or 0 for the text height
void draw_inline_run_marker(const Theme& theme, const analysis::LineStyle& style, float height = 0);

}  // namespace kvscope::gui
