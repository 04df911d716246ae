#pragma once

#include <imgui.h>

#include <string>
#include <string_view>
#include <vector>

#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// A picture with one character per cell: '-' quiet text color, '#' text color, '*' accent, '0' to '9' values of the
/// color map, 'a' and 'b' ends of the difference map, '.' empty.
using Sketch = std::string;

[[nodiscard]] std::vector<std::string_view> split_sketch_rows(const Sketch& sketch);

void draw_sketch(ImDrawList& list, const Sketch& sketch, ImVec2 from, ImVec2 size, const Theme& theme);

}  // namespace kvscope::gui
