#pragma once

namespace kvscope::program {

[[nodiscard]] const char* version();

/// Returns "commit 62e6075", or "commit unknown" for a build outside a git checkout.
[[nodiscard]] const char* commit();

/// Returns "2026-11-28", or "" for a build outside a git checkout.
[[nodiscard]] const char* commit_date();

}  // namespace kvscope::program
