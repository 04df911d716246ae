#pragma once

namespace kvscope::program {

[[nodiscard]] const char* version();

/// Returns "commit 62e6075", or "commit unknown" for a build outside a git checkout.
[[nodiscard]] const char* commit();

}  // namespace kvscope::program
