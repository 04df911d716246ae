#pragma once

#include <imgui.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace kvscope::gui {

/// Whether the window's fonts cannot draw a text right one glyph per character: scripts that join, reorder or stack
/// their letters (Arabic, Hebrew, Indic, Thai, …), combining marks, emoji, and characters that the font lacks.
/// @param font nullptr: the current one
bool needs_shaping(std::string_view text, ImFont* font = nullptr);

/// Left and right of bytes begin … end of a text, of which these are the byte_edges().
std::pair<float, float> reach_of_bytes(std::span<const float> edges, size_t begin, size_t end);

/// Draws one line of UTF-8 with its upper left corner at `at`, in the current font. ImDrawList::AddText, and with it
/// every widget, draws text that needs shaping: Pango sets it into a texture, kept for the next frames (emoji in their
/// own colours).
/// @param most shaped text that is wider is drawn narrower; 0: as wide as it is
void draw_text(ImDrawList* list, ImVec2 at, ImU32 color, std::string_view text, float most = 0);

/// Width of the same, in pixels.
float text_width(std::string_view text);

/// Where each byte of a text that is set by Pango begins, in pixels from the text's left end, and where the last one
/// ends: falling numbers in a script that is written from right to left. Bytes share their character's width. Valid in
/// this frame.
std::span<const float> byte_edges(std::string_view text);

/// Draws what of a text that is set by Pango stands between two distances from its left end, in pixels: one piece of
/// letters that join across pieces.
/// @param at upper left corner of the whole text
/// @param squeeze of all distances, `left` and `right` among them, which are given as byte_edges() has them
void draw_text_between(ImDrawList* list, ImVec2 at, ImU32 color, std::string_view text, float left, float right,
                       float squeeze);

/// As ImGui::TextUnformatted.
void text_item(std::string_view text);

/// The end of the character that begins at a byte: with its marks, and an emoji with its parts.
size_t end_of_character(std::string_view text, size_t begin);

/// The first byte that Backspace erases where the caret stands at `end`: a mark of its own in scripts that are typed
/// so, else a whole character.
size_t beginning_of_erased(std::string_view text, size_t end);

/// Where the caret stands after a step to the left (-1) or right (1) on the screen from a byte of one line.
/// @returns text.size() + 1 beyond the line's logical end, npos before its beginning
size_t byte_beside(std::string_view text, size_t byte, int direction);
/// As byte_beside(), to the next beginning of a word on that side.
size_t word_beside(std::string_view text, size_t byte, int direction);

/// How many bytes of a text fit into a width, in whole characters; one character at least. @param text not empty
size_t bytes_that_fit(std::string_view text, float width);

/// The first characters of a line, up to its first line break, with "…" where that is not all. @param width in pixels
/// of the current font
std::string beginning_that_fits(const std::string& text, float width);

}  // namespace kvscope::gui
