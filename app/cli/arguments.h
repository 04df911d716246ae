#pragma once

#include <string>
#include <vector>

namespace kvscope::cli {

/// Long options with '-' for every '_' in their names, so that --prompt_file and --prompt-file are alike. Values, also
/// those behind '=', stay as they are; an empty one there becomes an argument of its own.
std::vector<std::string> arguments_in_canonical_form(std::vector<std::string> arguments);

}  // namespace kvscope::cli
