#pragma once

#include <imgui.h>

#include <string_view>

namespace kvscope::gui {

/// Whether the window's fonts cannot draw a text right one glyph per character: scripts that join, reorder or stack
/// their letters (Arabic, Hebrew, Indic, Thai, …), combining marks, emoji, and characters that the font lacks.
/// @param font nullptr: the current one
bool needs_shaping(std::string_view text, ImFont* font = nullptr);

/// Draws one line of UTF-8 with its upper left corner at `at`, in the current font. Plain text goes Dear ImGui's way;
/// what needs shaping is set by Pango into a texture of the whole text, kept for the next frames (emoji in their own
/// colours).
/// @param most shaped text that is wider is drawn narrower; 0: as wide as it is
void draw_text(ImDrawList* list, ImVec2 at, ImU32 color, std::string_view text, float most = 0);

/// Width of the same, in pixels.
float text_width(std::string_view text);

/// The text as a widget, as ImGui::TextUnformatted, in one line.
void text_item(std::string_view text);

}  // namespace kvscope::gui
