#pragma once

#include <imgui.h>

#include <string>
#include <string_view>
#include <vector>

#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// A small picture: lines of equal length, from above, of one character for each cell; an empty first line is none of
/// it. '-' quiet ink, '#' ink, '*' the accent, '0' to '9' the map of values from lowest to highest, 'a' and 'b' the two
/// ends of the map of differences; '.' and whatever else: nothing.
using Sketch = std::string;

/// The lines of a sketch.
std::vector<std::string_view> rows_of(const Sketch& sketch);

/// Fills the cells, in the theme's colours. @param from, size in pixels: the rectangle that the picture is stretched to
void draw_sketch(ImDrawList& list, const Sketch& sketch, ImVec2 from, ImVec2 size, const Theme& theme);

}  // namespace kvscope::gui
