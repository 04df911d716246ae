#pragma once

#include <string>

namespace kvscope::cli {

/// What `--version` prints: version and commit, then the libraries in use, then the processor's level of vector
/// instructions that the kernels chose.
std::string version_text();

}  // namespace kvscope::cli
