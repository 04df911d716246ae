#pragma once

#include <string_view>
#include <vector>

namespace kvscope::cli {

/// Parses "0,5,10-12" as 0 5 10 11 12. An empty text gives an empty list. `what` names the items in errors.
/// @throws std::invalid_argument for anything else
std::vector<int> layers_from_text(std::string_view text, std::string_view what = "layers");

}  // namespace kvscope::cli
