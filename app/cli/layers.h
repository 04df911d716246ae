#pragma once

#include <string_view>
#include <vector>

namespace kvscope::cli {

/// Parses "0,5,10-12" as 0 5 10 11 12. @param what name of the numbers in error messages
std::vector<int> layers_from_text(std::string_view text, std::string_view what = "layers");

}  // namespace kvscope::cli
