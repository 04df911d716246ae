#pragma once

#include <cstdint>

namespace kvscope::kernels {

enum class Pooling { none, max, avg };

/// Pools the `width` values around each of n values into out (n). Beyond the ends, the average counts zeros, and the
/// maximum ignores missing values. NaN spreads to every window that contains it. `in` and `out` must not overlap.
/// Throws std::invalid_argument unless width is odd and positive.
void pool(Pooling kind, const float* in, int64_t n, int64_t width, float* out);
void pool(Pooling kind, const double* in, int64_t n, int64_t width, double* out);

}  // namespace kvscope::kernels
