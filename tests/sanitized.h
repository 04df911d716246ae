#pragma once

namespace kvscope::tests {

/// Whether the address or the thread sanitizer watches the tests: it multiplies what memory and calls cost, so that
/// texts are shorter there, and of several limits another one may be met first.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace kvscope::tests
