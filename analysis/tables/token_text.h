#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::analysis {

struct WholeText {
    std::string text;            ///< Bytes of one character from several tokens are joined.
    std::vector<size_t> begins;  ///< offset of each token in `text`, then the length of `text`
};

/// Joins tokens of a trace. Bytes written as ⟨E2⟩ are decoded if they form a character with their neighbors.
[[nodiscard]] WholeText join_and_decode_tokens(std::span<const std::string> tokens);

/// Returns the offset of the character that contains a byte, or `byte` if the text is not valid UTF-8 there.
[[nodiscard]] size_t character_begin(std::string_view text, size_t byte);

/// Returns the text of tokens first … last, including all bytes of characters that they only partly contain.
[[nodiscard]] std::string_view whole_characters_of_tokens(const WholeText& texts, size_t first, size_t last);

/// Mark that replaces the rest of a character that began in an earlier token.
inline constexpr std::string_view continuation_mark = "‿";

/// Returns the text of each token. If several tokens share a character, the first token contains the character, and the
/// other tokens contain the continuation mark.
[[nodiscard]] std::vector<std::string> tokens_with_whole_characters(const WholeText& whole);

}  // namespace kvscope::analysis
