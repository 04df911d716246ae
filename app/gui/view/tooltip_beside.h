#pragma once

#include <string>

namespace kvscope::gui {

/// Tooltip next to the current view, so that it does not cover the item or those beside it. If there is no space next
/// to the view, the tooltip appears a few lines above or below the mouse.
void begin_tooltip_beside();
void end_tooltip_beside();

void tooltip_beside(const std::string& text);

}  // namespace kvscope::gui
