#pragma once

#include <cstdint>

namespace kvscope::kernels {

/// The index of the largest of n values, the first one where several are; -1 where there is a NaN, or nothing.
int64_t index_of_largest(const float* values, int64_t n);

}  // namespace kvscope::kernels
