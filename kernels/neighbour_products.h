#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Vectors of several heads, tokens in order: element (i, h, c) at vectors + i * row_stride + h * head_stride + c,
/// strides in elements.
struct NeighbourProducts {
    DType dtype = DType::f32;  ///< f32 or bf16; all arithmetic is f32, sums of a call are added up in f64
    int64_t n_heads = 0;
    int64_t n = 0;
    int64_t d = 0;
    int64_t head_stride = 0;
    int64_t row_stride = 0;
    const void* vectors = nullptr;
    const void* before = nullptr;  ///< the token before the first one, laid out as a row; nullptr: there is none
    double* sums = nullptr;        ///< (n_heads, d, d), to which is added
};

/// Adds to a head's S the sum over neighbours of e_i e_{i+1}^T or of its transpose, e_i being vector i divided by its
/// length. Either way v^T S v is the sum of (e_i . v)(e_{i+1} . v), for any v, and the trace that of the neighbours'
/// cosines. A vector of zeros, or one whose square is none in f32, adds nothing; one with a NaN makes S NaN. The result
/// does not depend on the number of threads.
/// @throws std::invalid_argument for another type, negative sizes or a null array.
void neighbour_products(const NeighbourProducts& problem);

/// v^T S v for each of n vectors (n, d): out (n), computed in f64. matrix: (d, d)
void quadratic_forms(const double* matrix, const float* vectors, int64_t n, int64_t d, double* out);

}  // namespace kvscope::kernels
