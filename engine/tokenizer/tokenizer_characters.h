#pragma once

#include <cstddef>
#include <string_view>

namespace kvscope::checkpoint {

/// Where the character before `end` begins.
size_t previous_character(std::string_view text, size_t end);

/// Whether the first or last character of a text is one of Unicode's \w.
bool starts_with_word(std::string_view text);
bool ends_with_word(std::string_view text);

/// Whether a decimal digit of any script is in a text.
bool has_digit(std::string_view text);

}  // namespace kvscope::checkpoint
