#pragma once

#include <string>

#include "app/gui/drawing/heat_map.h"
#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// A square of a map's key with its meaning behind it, in the current line; without a label the next stands close by.
void draw_color_patch(const Theme& theme, ImU32 color, const std::string& label);

/// The colours of a count: from `least`, below which is the ground, to `most`.
MapColors count_colors(const Theme& theme, float least, float most);

/// From −most, where B has more, to most, where A has; the ground where both have as much.
MapColors difference_colors(const Theme& theme, float most);

}  // namespace kvscope::gui
