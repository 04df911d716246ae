#pragma once

#include <imgui.h>

#include "analysis/figure.h"
#include "app/gui/drawing/theme.h"

/// How a run looks where it is no curve: its colour is the policy's, its marker or fill the budget's.
namespace kvscope::gui {

/// Pixels for a point (1/72 inch) of line widths and markers, at the present size of text.
float pixels_of_point();

/// Whether a colour so pale needs an outline on this ground, and that outline.
bool wants_rim(const Theme& theme, analysis::Rgb color);
ImU32 rim_of(analysis::Rgb color, float alpha);

/// @param size across, in pixels
void draw_marker(const Theme& theme, analysis::Marker marker, ImVec2 at, float size, analysis::Rgb color, float alpha,
                 ImDrawList* list);

/// The run's marker beside its name, as the budget has it in curves. @param from the upper left corner of its room, a
/// square; @param is_filled the outline alone where not: a run that is hidden
void draw_run_chip(const Theme& theme, const analysis::LineStyle& style, ImVec2 from, float side, ImDrawList* list,
                   bool is_filled = true);

/// The same as an item of a line of text, as high as it, followed by SameLine(). @param height of the line; 0: of text
void run_chip(const Theme& theme, const analysis::LineStyle& style, float height = 0);

/// A bar: full where a curve would be solid, hatched where it would be dashed, hollow where dotted, lined across where
/// dash-dotted; bars too thin for that are paler instead.
void draw_run_bar(const Theme& theme, const analysis::LineStyle& style, ImVec2 min, ImVec2 max, ImDrawList* list);

}  // namespace kvscope::gui
