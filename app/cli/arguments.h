#pragma once

#include <string>
#include <vector>

namespace kvscope::cli {

/// Replaces '_' by '-' in option names, so that --prompt_file equals --prompt-file. Splits "--name=" into two
/// arguments.
std::vector<std::string> arguments_in_canonical_form(std::vector<std::string> arguments);

}  // namespace kvscope::cli
