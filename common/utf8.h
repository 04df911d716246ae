#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvscope {

/// A character of a text. A byte that begins no valid character is returned as U+FFFD with `bytes` = 1.
struct Utf8Character {
    char32_t code = 0xFFFD;
    size_t bytes = 1;
    bool is_valid = false;
};

[[nodiscard]] Utf8Character decode_utf8_character(std::string_view text, size_t at);

/// Returns the offset of the first byte that is not valid UTF-8, or npos.
[[nodiscard]] size_t first_invalid_utf8(std::string_view text);

/// @throws std::invalid_argument with the offset and the byte if `text` is not UTF-8
void require_utf8(std::string_view text);

/// Replaces invalid bytes by U+FFFD, with one U+FFFD for an incomplete character, as Python does.
[[nodiscard]] std::string utf8_lossy(std::string_view bytes);

void append_utf8(std::string& out, char32_t code);

[[nodiscard]] bool is_white_space(char32_t code);

}  // namespace kvscope
