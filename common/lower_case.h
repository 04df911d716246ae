#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// Converts ASCII letters to lower case and leaves other bytes unchanged.
[[nodiscard]] std::string lower_case(std::string_view text);

/// Returns the words of a text in lower case. A word consists of ASCII letters, digits and bytes outside ASCII.
[[nodiscard]] std::vector<std::string> lower_case_words(std::string_view text);

}  // namespace kvscope
