#pragma once

#include <cstddef>
#include <string_view>

namespace kvscope::checkpoint {

[[nodiscard]] size_t offset_of_previous_character(std::string_view text, size_t end);

/// Whether the first character of a text belongs to Unicode's \w.
[[nodiscard]] bool starts_with_word(std::string_view text);
[[nodiscard]] bool ends_with_word(std::string_view text);

[[nodiscard]] bool has_digit(std::string_view text);

}  // namespace kvscope::checkpoint
