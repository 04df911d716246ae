#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/runs/answer_byte_ranges.h"

namespace kvscope::gui {

struct Word {
    size_t begin = 0;  ///< byte positions in the text
    size_t end = 0;
    size_t line_breaks = 0;  ///< number of line breaks before the word
    bool glued = false;      ///< no space before the word
    bool differs = false;    ///< set by mark_different_words()
};

/// Splits a text at spaces, around each Chinese or Japanese character, and after 32 characters.
[[nodiscard]] std::vector<Word> split_words(std::string_view text);

/// Difference between two sequences of words or tokens, from their longest common subsequence.
struct Difference {
    std::vector<bool> differs;  ///< (n) elements that are not in the longest common subsequence
    std::vector<size_t>
        left_out;            ///< (n + 1) number of missing reference elements before each place, except replaced ones
    size_t n_reference = 0;  ///< length of the reference
    [[nodiscard]] size_t n_extra() const { return static_cast<size_t>(std::ranges::count(differs, true)); }
    /// Number of reference elements that this sequence lacks. A replaced element counts as extra and as missing.
    [[nodiscard]] size_t n_missing() const { return n_reference - (differs.size() - n_extra()); }
};
[[nodiscard]] Difference word_difference(std::string_view text, const std::vector<Word>& words,
                                         std::string_view reference);
void mark_different_words(std::string_view text, std::vector<Word>& words, std::string_view reference);
[[nodiscard]] Difference token_difference(std::span<const int32_t> ids, std::span<const int32_t> reference);

using analysis::step_byte_ranges;
using analysis::StepPlace;

}  // namespace kvscope::gui
