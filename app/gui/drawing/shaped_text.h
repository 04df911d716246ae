#pragma once

#include <imgui.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace kvscope::gui {

/// Whether a text needs Pango because it has letters that join, reorder or stack (Arabic, Hebrew, Indic, Thai, …),
/// combining marks, emoji, or characters that the font lacks. @param font nullptr for the current font
[[nodiscard]] bool needs_shaping(std::string_view text, ImFont* font = nullptr);

/// Returns the left and right edges of the bytes from begin to end. @param edges see byte_edges()
[[nodiscard]] std::pair<float, float> reach_of_bytes(std::span<const float> edges, size_t begin, size_t end);

/// Draws one line of UTF-8, with Pango if it needs shaping. ImDrawList::AddText and all widgets do the same.
/// @param most width in pixels to which shaped text is squeezed, or 0 for no limit
void draw_text(ImDrawList* list, ImVec2 at, ImU32 color, std::string_view text, float most = 0);

[[nodiscard]] float text_width(std::string_view text);

/// Returns the left edge of each byte, then the text's right edge, in pixels. The span is valid during this frame.
[[nodiscard]] std::span<const float> byte_edges(std::string_view text);

/// Draws the part of a text between two x positions. Joined letters keep their shape.
/// @param at upper left corner of the whole text @param squeeze factor on the positions of byte_edges()
void draw_text_between(ImDrawList* list, ImVec2 at, ImU32 color, std::string_view text, float left, float right,
                       float squeeze);

void text_item(std::string_view text);

/// Returns the end of the character that begins at a byte, including its combining marks and the parts of an emoji.
[[nodiscard]] size_t end_of_character(std::string_view text, size_t begin);

/// Returns the first byte that Backspace erases before the caret `end`. In some scripts, only a mark is erased.
[[nodiscard]] size_t find_backspace_start(std::string_view text, size_t end);

/// Returns the caret position one step to the left (-1) or right (1) on the screen. Returns text.size() + 1 for a step
/// beyond the line's logical end, and npos for a step before the line's beginning.
[[nodiscard]] size_t move_caret_by_character(std::string_view text, size_t byte, int direction);
/// Like move_caret_by_character(), but moves to the next beginning of a word.
[[nodiscard]] size_t move_caret_by_word(std::string_view text, size_t byte, int direction);

/// Returns how many bytes of whole characters fit into a width, but counts at least one character.
[[nodiscard]] size_t bytes_that_fit(std::string_view text, float width);

/// Returns the beginning of the first line that fits into a width, with "…" if it is shortened.
[[nodiscard]] std::string beginning_that_fits(const std::string& text, float width);

}  // namespace kvscope::gui
