#pragma once

#include <string>

#include "app/gui/drawing/heat_map.h"
#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Draws a colored square and its label in the current line. Squares without labels are close together.
void draw_color_patch(const Theme& theme, ImU32 color, const std::string& label);

/// Draws all colors from the smallest value on the left to the largest value on the right.
void draw_color_gradient(const MapColors& colors, ImVec2 from, ImVec2 size);

/// Returns the colors of counts from `least` to `most`. Smaller counts have the background color.
[[nodiscard]] MapColors count_colors(const Theme& theme, float least, float most);

/// Returns the colors for differences between −most (B has more) and +most (A has more). Zero has the background color.
[[nodiscard]] MapColors difference_colors(const Theme& theme, float most);

}  // namespace kvscope::gui
