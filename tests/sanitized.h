#pragma once

namespace kvscope::tests {

/// Whether the address sanitizer watches the tests: it multiplies what memory and calls cost, so that texts are shorter
/// there, and of several limits another one may be met first.
#ifdef __SANITIZE_ADDRESS__
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

}  // namespace kvscope::tests
