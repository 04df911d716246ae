#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/answer_places.h"

namespace kvscope::gui {

/// A word of an answer, without the blanks before it.
struct Word {
    size_t begin = 0;  ///< bytes of the text
    size_t end = 0;
    size_t line_breaks = 0;  ///< before it
    bool glued = false;      ///< no blank before it
    bool differs = false;    ///< what mark_differences() says
};

/// Splits at blanks, before and after each Chinese or Japanese character, and words without end every 32 characters.
std::vector<Word> words_of(std::string_view text);

/// How a sequence of words or tokens differs from a reference, by a longest common subsequence of the two.
struct Difference {
    std::vector<bool> differs;  ///< (n) those that are in no longest common subsequence
    std::vector<size_t>
        left_out;            ///< (n + 1) of the reference, before each and at the end, where nothing stands for them
    size_t n_reference = 0;  ///< of the reference
    /// What the reference has not. Taken the other way round this is n_missing(), and the other way about.
    size_t n_extra() const { return static_cast<size_t>(std::count(differs.begin(), differs.end(), true)); }
    /// What the reference alone has: what is replaced counts on both sides.
    size_t n_missing() const { return n_reference - (differs.size() - n_extra()); }
};
Difference word_difference(std::string_view text, const std::vector<Word>& words, std::string_view reference);
/// Sets `differs` of the words of `text`.
void mark_differences(std::string_view text, std::vector<Word>& words, std::string_view reference);
Difference token_difference(std::span<const int32_t> ids, std::span<const int32_t> reference);

using analysis::place_steps;
using analysis::StepPlace;

}  // namespace kvscope::gui
