#pragma once

#include <string>

namespace kvscope::cli {

/// Returns the text of `--version`: version and commit, the libraries, the CPU and the vector instructions in use.
[[nodiscard]] std::string version_text();

}  // namespace kvscope::cli
