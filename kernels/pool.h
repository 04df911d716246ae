#pragma once

#include <cstdint>

namespace kvscope::kernels {

enum class Pooling { none, max, avg };

/// 1-D pooling of n values into out (n), stride 1, floor(width / 2) padding on each side: zeros for the average,
/// ignored for the maximum. NaN spreads to every window that contains it. `in` and `out` must not overlap.
/// Throws std::invalid_argument unless width is odd and positive.
void pool(Pooling kind, const float* in, int64_t n, int64_t width, float* out);
void pool(Pooling kind, const double* in, int64_t n, int64_t width, double* out);

}  // namespace kvscope::kernels
