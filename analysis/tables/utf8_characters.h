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

/// Decodes the character that begins at byte `at`. Returns 0 bytes if no character begins there.
[[nodiscard]] Utf8Character decode_utf8_character(std::string_view text, size_t at);

/// Converts ASCII letters to lower case and leaves other bytes unchanged.
[[nodiscard]] std::string lower_case(std::string_view text);

}  // namespace kvscope::analysis
