#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::checkpoint {

/// A character of a rewritten text and the bytes of the original text that the character replaces.
struct AlignedCharacter {
    char32_t code_point = 0;
    uint32_t begin = 0, end = 0;
};
using AlignedText = std::vector<AlignedCharacter>;

/// @param utf8 valid UTF-8, shorter than 4 GiB
[[nodiscard]] AlignedText make_aligned_text(std::string_view utf8);

[[nodiscard]] std::string aligned_text_to_utf8(std::span<const AlignedCharacter> text);

}  // namespace kvscope::checkpoint
