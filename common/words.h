#pragma once

#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace kvscope {

/// Splits a text at white space and returns the distinct words.
[[nodiscard]] inline std::set<std::string, std::less<>> words(std::string_view text) {
    std::istringstream in{std::string(text)};
    return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace kvscope
