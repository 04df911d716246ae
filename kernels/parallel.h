#pragma once

#include <cstdint>
#include <functional>

namespace kvscope::kernels {

/// Calls body(0) … body(n - 1), on several threads if the work is large enough. `elements` is the number of element
/// accesses of all calls together. Calls must not depend on each other. After all calls, the exception of the lowest
/// failing one is thrown.
void parallel_for(int64_t n, int64_t elements, const std::function<void(int64_t)>& body);

}  // namespace kvscope::kernels
