#pragma once

#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Relative error |found - expected| / |expected| of each vector, in f64, or 0 if |expected| is 0.
struct RowErrors {
    DType dtype = DType::f32;  ///< type of found and expected: f32 or bf16
    int64_t n_rows = 0;
    int n_heads = 0;
    int head_dim = 0;
    const void* found = nullptr;  ///< (n_rows, n_heads, head_dim)
    int64_t found_stride = 0;     ///< elements between rows
    const void* expected = nullptr;
    int64_t expected_stride = 0;
    double* errors = nullptr;  ///< (n_rows, n_heads), always in host memory
};

/// No problem may write memory that another problem uses. Throws std::invalid_argument for f16.
void row_errors(std::span<const RowErrors> problems);

}  // namespace kvscope::kernels
