#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvscope {

/// Returns a number with its noun: "1 entry", "2 entries".
/// @param noun in the singular, with a regular plural: "day", "entry", "query"
[[nodiscard]] std::string counted(std::int64_t n, std::string_view noun);

}  // namespace kvscope
