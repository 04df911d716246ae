#pragma once

#include <string>
#include <vector>

namespace kvscope::cli {

/// Replaces '_' by '-' in the names of long options, so that --prompt_file equals --prompt-file. Values do not change.
/// "--name=" becomes "--name" and an empty argument.
std::vector<std::string> arguments_in_canonical_form(std::vector<std::string> arguments);

}  // namespace kvscope::cli
