#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvscope::analysis {

struct Utf8Character {
    uint32_t code = 0;
    size_t bytes = 0;
};

/// The character that begins at a byte of a text; no bytes where none does.
Utf8Character utf8_character(std::string_view text, size_t at);

/// With ASCII letters in lower case, and every other byte as it is.
std::string lower_case(std::string_view text);

}  // namespace kvscope::analysis
