#pragma once

#include <cstdint>

namespace kvscope::kernels {

/// a . b of n elements, in f64.
double dot(const float* a, const float* b, int64_t n);

/// Cosine of each pair of n vectors of size d, row_stride apart: out (n, n), symmetric, diagonal 1, within [-1, 1]. A
/// zero vector has cosine 0 with all others.
void cosine_matrix(const float* vectors, int64_t n, int64_t d, int64_t row_stride, float* out);

/// Mean of a matrix (n, n) without its diagonal; 0 where n < 2.
double mean_off_diagonal(const float* matrix, int64_t n);

}  // namespace kvscope::kernels
