#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace kvscope::program {

/// Parses "0,5,10-12" as 0 5 10 11 12. @param what name of the numbers in error messages
/// @throws std::invalid_argument
[[nodiscard]] std::vector<int> number_list(std::string_view text, std::string_view what = "layers");

/// Parses "100-220", or "100" as a range of one number. @param what name of the option in error messages
/// @throws std::invalid_argument
[[nodiscard]] std::pair<int64_t, int64_t> number_range(std::string_view text, std::string_view what);

}  // namespace kvscope::program
