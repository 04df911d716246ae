#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Vectors of several heads. Element c of token i and head h is vectors[i * row_stride + h * head_stride + c].
struct AdjacentOuterProducts {
    DType dtype = DType::f32;  ///< f32 or bf16; arithmetic is f32 within a call, and `sums` are f64
    int64_t n_heads = 0;
    int64_t n = 0;
    int64_t d = 0;
    int64_t head_stride = 0;
    int64_t row_stride = 0;
    const void* vectors = nullptr;
    const void* before = nullptr;  ///< vector of the token before the first one, with the layout of a row, or nullptr
    double* sums = nullptr;        ///< (n_heads, d, d) the results are added here
};

/// Adds to each head's S the sum over adjacent tokens of e_i e_{i+1}^T (or its transpose), where e_i is vector i
/// divided by its length. So v^T S v = sum (e_i . v)(e_{i+1} . v), and the trace of S is the sum of the cosines.
/// Vectors of length 0 add nothing; NaN makes S NaN. Throws std::invalid_argument for another type, negative sizes or a
/// null array.
void add_adjacent_outer_products(const AdjacentOuterProducts& problem);

/// Computes v^T S v for each of n vectors (n, d) into out (n), in f64. `matrix` is S (d, d).
void quadratic_forms(const double* matrix, const float* vectors, int64_t n, int64_t d, double* out);

}  // namespace kvscope::kernels
