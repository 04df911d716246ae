#pragma once

#include <cstdint>

namespace kvscope::kernels {

/// Returns the dot product of n elements, summed in f64.
[[nodiscard]] double dot(const float* a, const float* b, int64_t n);

/// Computes the cosines of all pairs of n vectors of size d into out (n, n). Cosines with a zero vector are 0.
void cosine_matrix(const float* vectors, int64_t n, int64_t d, int64_t row_stride, float* out);

/// Returns the mean of an (n, n) matrix without its diagonal, or 0 if n < 2.
[[nodiscard]] double mean_off_diagonal(const float* matrix, int64_t n);

}  // namespace kvscope::kernels
