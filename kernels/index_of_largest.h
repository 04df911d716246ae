#pragma once

#include <cstdint>

namespace kvscope::kernels {

/// Returns the index of the largest value, the first one if several are equal, or -1 if n is 0 or a value is NaN.
[[nodiscard]] int64_t index_of_largest(const float* values, int64_t n);

}  // namespace kvscope::kernels
