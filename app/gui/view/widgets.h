#pragma once

#include <string>

#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Begins a tooltip next to the current view or, without space there, a few lines above or below the mouse.
void begin_tooltip_beside();
void end_tooltip_beside();

void draw_tooltip_beside(const std::string& text);

/// Stays on the current line if an item of this width in pixels fits. Returns whether it fits.
bool same_line_if_fits(float width);

/// Fades out the lower edge of an ImGui window that can be scrolled down. Call after drawing its contents.
void draw_scroll_fade(const Theme& theme);

}  // namespace kvscope::gui
