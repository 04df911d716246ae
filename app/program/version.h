#pragma once

namespace kvscope::program {

const char* version();

/// Returns "commit 62e6075", or "commit unknown" for a build outside a git checkout.
const char* commit();

}  // namespace kvscope::program
