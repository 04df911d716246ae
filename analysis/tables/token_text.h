#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::analysis {

/// Tokens as one text.
struct WholeText {
    std::string text;            ///< bytes that are a character together stand as that character
    std::vector<size_t> begins;  ///< where each token begins in it, and its end
};

/// @param tokens as a trace has them: a byte that is no character alone is written ⟨E2⟩, and stays so where it is none
/// beside its neighbours' either
WholeText whole_text(std::span<const std::string> tokens);

/// Where the character begins that a byte belongs to; the byte itself where the text is no UTF-8 there.
size_t character_begin(std::string_view text, size_t byte);

/// What tokens first … last say, with the whole of characters that they have only bytes of.
std::string_view whole_characters(const WholeText& texts, size_t first, size_t last);

/// Stands in a token for the character that it has bytes of, and that began in a token before.
inline constexpr std::string_view continuation_mark = "‿";

/// Each token as it is read: a character that several tokens share is whole in the first of them, and the others have
/// the continuation mark in its place.
std::vector<std::string> tokens_with_whole_characters(const WholeText& whole);

}  // namespace kvscope::analysis
