#pragma once

#include <string_view>

namespace kvscope::policies {

[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
    constexpr std::string_view white_space = " \t\r\n";
    const size_t first = text.find_first_not_of(white_space);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(white_space) - first + 1);
}

}  // namespace kvscope::policies
