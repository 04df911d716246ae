#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// The code point at an offset. If invalid, `length` covers the bytes that Python replaces by one U+FFFD.
struct Utf8Step {
    char32_t code_point = 0;
    uint8_t length = 0;
    bool valid = false;
};
[[nodiscard]] Utf8Step decode_utf8_character(std::string_view text, size_t at);

/// Returns the offset of the first byte that is not valid UTF-8, or npos.
[[nodiscard]] size_t first_invalid_utf8(std::string_view text);

/// @throws std::invalid_argument with the offset and the byte if `text` is not UTF-8
void require_utf8(std::string_view text);

[[nodiscard]] std::string utf8_lossy(std::string_view bytes);

void append_utf8(std::string& out, char32_t code_point);

[[nodiscard]] bool is_white_space(char32_t code_point);

}  // namespace kvscope::checkpoint
