#pragma once

#include <string>

#include "app/gui/drawing/heat_map.h"
#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Draws a colored square with its meaning in the current line. Squares without a label are close together.
void draw_color_patch(const Theme& theme, ImU32 color, const std::string& label);

/// Colors of a count between `least` and `most`. Smaller counts have the background color.
MapColors count_colors(const Theme& theme, float least, float most);

/// Colors of a difference between −most (B has more) and most (A has more). Zero has the background color.
MapColors difference_colors(const Theme& theme, float most);

}  // namespace kvscope::gui
