#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// The code point that starts at `at`, and how many bytes it takes. For bytes that form no character (overlong forms,
/// surrogates, values above U+10FFFF, cut-off sequences) `valid` is false and `length` covers the maximal subpart, so
/// that replacing it by one U+FFFD is what Rust's from_utf8_lossy, Python and browsers do.
struct Utf8Step {
    char32_t code_point = 0;
    uint8_t length = 0;
    bool valid = false;
};
Utf8Step utf8_step(std::string_view text, size_t at);

/// Offset of the first byte that is not UTF-8; npos if all of it is.
size_t first_invalid_utf8(std::string_view text);

/// @throws std::invalid_argument naming the offset and the byte if `text` is not UTF-8
void require_utf8(std::string_view text);

/// The text with U+FFFD in place of every invalid sequence.
std::string utf8_lossy(std::string_view bytes);

void append_utf8(std::string& out, char32_t code_point);

/// What Unicode calls White_Space.
bool is_white_space(char32_t code_point);

}  // namespace kvscope::checkpoint
