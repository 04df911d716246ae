#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Cosine of each pair of n vectors of size d, row_stride apart: out (n, n), symmetric, diagonal 1, within [-1, 1]. A
/// zero vector has cosine 0 with all others.
void cosine_matrix(const float* vectors, int64_t n, int64_t d, int64_t row_stride, float* out);

/// Mean of a matrix (n, n) without its diagonal; 0 where n < 2.
double mean_off_diagonal(const float* matrix, int64_t n);

/// Vectors of several heads: element (h, i, c) at data + h * head_stride + i * row_stride + c, strides in elements.
struct HeadVectors {
    const void* data = nullptr;
    DType dtype = DType::f32;  ///< f32 or bf16
    int64_t n_heads = 0;
    int64_t n = 0;
    int64_t d = 0;
    int64_t head_stride = 0;
    int64_t row_stride = 0;
};

/// Mean cosine of neighbours, vectors i and i+1 of the same head, over all heads; NaN where n < 2. A zero vector has
/// cosine 0. The result does not depend on the number of threads.
/// @throws std::invalid_argument for another type.
double adjacent_cosine(const HeadVectors& vectors);

}  // namespace kvscope::kernels
