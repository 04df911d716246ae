#pragma once

#include <cstdint>

namespace kvscope::kernels {

enum class Pooling { none, max, avg };

/// 1-D pooling of n values with stride 1 and floor(width / 2) places of padding on each side, out (n). Max-pooling
/// ignores the padding, average-pooling counts it as zeros (the sum is always divided by `width`). Averages are summed
/// in f64 from the left. A NaN is in the result of every window that holds it. in and out must not overlap.
/// @throws std::invalid_argument unless width is odd and positive (none: copied, width unused).
void pool(Pooling kind, const float* in, int64_t n, int64_t width, float* out);
void pool(Pooling kind, const double* in, int64_t n, int64_t width, double* out);

}  // namespace kvscope::kernels
