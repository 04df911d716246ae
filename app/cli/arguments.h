#pragma once

#include <string>
#include <vector>

namespace kvscope::cli {

/// Replaces '_' by '-' in option names, and splits "--name=" into the name and an empty value.
std::vector<std::string> arguments_in_canonical_form(std::vector<std::string> arguments);

}  // namespace kvscope::cli
