#pragma once

#include <cstdint>
#include <functional>

namespace kvscope::kernels {

/// Calls body(0) … body(n - 1), on several threads where `elements`, the numbers that all of them look at together, are
/// worth it (count those several times that are looked at several times). What one call does must not depend on another
/// one. Where some throw, what the lowest of them threw is thrown once all are done.
void parallel_for(int64_t n, int64_t elements, const std::function<void(int64_t)>& body);

}  // namespace kvscope::kernels
