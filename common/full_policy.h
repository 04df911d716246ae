#pragma once

#include <string_view>

namespace kvscope {

/// Name of the policy that keeps every entry, in traces, recipes and on the command line.
inline constexpr std::string_view full_policy = "full";

}  // namespace kvscope
