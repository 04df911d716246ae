#pragma once

#include <imgui.h>

#include <string>

#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Begins a tooltip next to the current view or, without space there, a few lines above or below the mouse.
void begin_tooltip_beside();
void end_tooltip_beside();

void draw_tooltip_beside(const std::string& text);

/// Stays on the current line if an item of this width in pixels fits. Returns whether it fits.
bool same_line_if_fits(float width);

/// Returns the width of a button with this label, in pixels.
[[nodiscard]] float button_width(const char* label);

/// Draws a text, without wrapping, in the color of disabled items, or in another font of the theme.
void plain_text(const std::string& text);
void disabled_text(const std::string& text);
void text_in(ImFont* font, const std::string& text);

/// Draws a text that wraps at the edge of the window, in a color or in the color of disabled items.
void wrapped_text(const std::string& text, const ImVec4& color);
void quiet_text(const std::string& text);

/// Sets the tooltip of the last item. The second function also shows the tooltip of a disabled item.
void item_tooltip(const std::string& text);
void tooltip_of_disabled(const std::string& text);

/// Fades out the lower edge of an ImGui window that can be scrolled down. Call after drawing its contents.
void draw_scroll_fade(const Theme& theme);

}  // namespace kvscope::gui
