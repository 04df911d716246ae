#pragma once

#include <cstdint>
#include <functional>

namespace kvscope::kernels {

/// Calls body(0) … body(n - 1), on several threads if `elements`, the number of element accesses of all calls, is
/// large. Calls must be independent. At the end, throws the exception of the lowest failing call.
void parallel_for(int64_t n, int64_t elements, const std::function<void(int64_t)>& body);

}  // namespace kvscope::kernels
