#pragma once

#include <string>

namespace kvscope::gui {

/// Begins a tooltip next to the current view or, without space there, a few lines above or below the mouse.
void begin_tooltip_beside();
void end_tooltip_beside();

void draw_tooltip_beside(const std::string& text);

}  // namespace kvscope::gui
