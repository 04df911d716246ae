#pragma once

#include <string_view>
#include <vector>

namespace kvscope::cli {

/// Parses "0,5,10-12" as 0 5 10 11 12. @throws std::invalid_argument, which calls the numbers `what`
std::vector<int> layers_from_text(std::string_view text, std::string_view what = "layers");

}  // namespace kvscope::cli
