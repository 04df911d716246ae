#pragma once

namespace kvscope::program {

/// "0.1.0", as CMake's project() has it.
const char* version();

/// "commit 62e6075", or "commit unknown" where it was not built from a git checkout.
const char* commit();

}  // namespace kvscope::program
