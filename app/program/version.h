#pragma once

namespace kvscope::program {

/// Returns the version, such as "0.1.0", from CMake's project().
const char* version();

/// Returns the commit, such as "commit 62e6075", or "commit unknown" for a build outside a git checkout.
const char* commit();

}  // namespace kvscope::program
