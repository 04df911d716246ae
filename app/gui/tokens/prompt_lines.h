#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "app/gui/session/prompt_text.h"
#include "app/gui/tokens/joined_tokens.h"

namespace kvscope::gui {

/// A token, or the part of one that stands in one line, on a grid of character cells.
struct PlacedToken {
    uint32_t token = 0;
    uint32_t begin = 0;  ///< bytes of PromptText::shown[token]
    uint32_t end = 0;
    uint32_t cell = 0;       ///< from the line's left end
    uint32_t n_cells = 0;    ///< 0 where the token has only later bytes of a character
    bool is_turned = false;  ///< read from right to left
};

/// A prompt broken into lines of some width.
struct PromptLines {
    std::vector<PlacedToken> placed;   ///< in order
    std::vector<size_t> begins;        ///< of each line, in `placed`; and its end
    std::vector<JoinedTokens> joined;  ///< in order, each within a line
    std::vector<size_t> turned;        ///< lines whose paragraph is read from right to left, in order
    uint64_t prompt = 0;               ///< PromptText::number

    size_t size() const { return begins.size() - 1; }
    std::span<const PlacedToken> line(size_t i) const {
        return std::span(placed).subspan(begins[i], begins[i + 1] - begins[i]);
    }
    std::span<const JoinedTokens> joined_in(size_t line) const;
    /// Whether a line's paragraph is read from right to left.
    bool is_turned(size_t line) const { return std::binary_search(turned.begin(), turned.end(), line); }
    /// The line in which a token begins; 0 in an empty prompt.
    size_t line_of(int64_t token) const;
};

/// Cells of a shown text: East Asian wide characters and emoji take two, combining marks none.
size_t n_cells(std::string_view shown);

/// Whether a text's first letter is of a script that is written from right to left.
bool is_right_to_left(std::string_view text);

/// Breaks before words where possible, else between tokens, and inside a token only where it is wider than a line; a
/// line break in the text ends its line. Scripts that are written from right to left stand so. Takes time in proportion
/// to the prompt: not for the window's thread.
PromptLines break_lines(const PromptText& prompt, size_t cells_a_line);

}  // namespace kvscope::gui
