#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvscope::gui {

/// A word of an answer, without the blanks before it.
struct Word {
    size_t begin = 0;  ///< bytes of the text
    size_t end = 0;
    size_t line_breaks = 0;  ///< before it
    bool glued = false;      ///< no blank before it
    bool differs = false;
};

/// Splits at blanks, before and after each Chinese or Japanese character, and words without end every 32 characters.
std::vector<Word> words_of(std::string_view text);

/// Sets `differs` of the words of `text` that are in no longest common subsequence with the words of `reference`.
void mark_differences(std::string_view text, std::vector<Word>& words, std::string_view reference);

/// Bytes [begin, end) of an answer that a decode step wrote.
struct StepPlace {
    size_t begin = 0;
    size_t end = 0;
};

/// Places of the tokens `ids` in their text. `pieces` holds the text of the tokens that are known (those of the
/// prompt); tokens between them share what is left among themselves in equal parts, so that their places are nearly
/// right.
std::vector<StepPlace> place_steps(std::string_view text, std::span<const int32_t> ids,
                                   const std::unordered_map<int32_t, std::string>& pieces);

}  // namespace kvscope::gui
