#pragma once

#include <cstdint>
#include <functional>

namespace kvscope::kernels {

/// Calls body(0) … body(n - 1). Uses several threads if `elements`, the number of element accesses of all calls, is
/// large. Calls must be independent. At the end, throws the exception of the failing call with the lowest index.
void parallel_for(int64_t n, int64_t elements, const std::function<void(int64_t)>& body);

}  // namespace kvscope::kernels
