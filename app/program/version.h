#pragma once

namespace kvscope::program {

[[nodiscard]] const char* version();

/// Returns the short hash of the commit, such as "62e6075", or "unknown" for a build outside a git checkout.
[[nodiscard]] const char* commit();

/// Returns the date of the commit, such as "2026-11-28", or "" for a build outside a git checkout.
[[nodiscard]] const char* commit_date();

}  // namespace kvscope::program
