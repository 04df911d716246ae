#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "app/gui/tokens/joined_tokens.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {

/// A token, or the part of a token in one line, placed on a grid of character cells.
struct PlacedToken {
    uint32_t token = 0;
    uint32_t begin = 0;  ///< byte range in PromptText::shown[token]
    uint32_t end = 0;
    uint32_t cell = 0;       ///< first cell, counted from the left
    uint32_t n_cells = 0;    ///< number of cells; 0 for a token that only continues a character
    bool is_turned = false;  ///< whether the token is read from right to left
};

struct PromptLines {
    std::vector<PlacedToken> placed;
    std::vector<size_t> begins;        ///< index in `placed` of each line's first token, then placed.size()
    std::vector<JoinedTokens> joined;  ///< in the order of the text; each joined text lies in one line
    std::vector<size_t> turned;        ///< lines in right-to-left paragraphs, ascending
    uint64_t prompt = 0;               ///< PromptText::number of the prompt

    [[nodiscard]] size_t size() const { return begins.size() - 1; }
    [[nodiscard]] std::span<const PlacedToken> line(size_t i) const {
        return std::span(placed).subspan(begins[i], begins[i + 1] - begins[i]);
    }
    [[nodiscard]] std::span<const JoinedTokens> joined_in(size_t line) const;
    [[nodiscard]] bool is_turned(size_t line) const { return std::binary_search(turned.begin(), turned.end(), line); }
    /// Returns the line in which a token begins, or 0 for an empty prompt.
    [[nodiscard]] size_t line_of(int64_t token) const;
};

/// Returns a text's width in cells. Wide East Asian characters and emoji take two cells, combining marks no cell.
[[nodiscard]] size_t text_width_in_cells(std::string_view shown);

[[nodiscard]] bool is_right_to_left(std::string_view text);

/// Breaks a prompt into lines: before words if possible, otherwise between tokens, and inside a token only if the token
/// is wider than a line. Keeps line breaks in the text. Takes O(N) time, so do not call on the app's main thread.
[[nodiscard]] PromptLines break_lines(const PromptText& prompt, size_t cells_a_line);

}  // namespace kvscope::gui
