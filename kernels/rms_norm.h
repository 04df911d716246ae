#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace kvscope::kernels {

/// out = x / sqrt(mean(x^2) + eps) * weight for each row, in f32. `out` may be `x` if the types are equal.
struct RmsNorm {
    int64_t n_rows = 0;
    int64_t heads = 1;  ///< contiguous vectors of length dim per row, normalized separately with one weight
    int64_t dim = 0;
    float eps = 0;
    const void* x = nullptr;  ///< (n_rows, heads, dim)
    DType x_dtype = DType::f32;
    int64_t x_stride = 0;           ///< elements between rows; 0 means heads * dim
    const float* weight = nullptr;  ///< (dim)
    void* out = nullptr;            ///< (n_rows, heads, dim)
    DType out_dtype = DType::f32;
    int64_t out_stride = 0;  ///< elements between rows; 0 means heads * dim
};
void rms_norm(const RmsNorm& problem);

/// residual += delta, then out = rms_norm(residual). Reads the f32 residual stream only once.
struct AddRmsNorm {
    int64_t n_rows = 0;
    int64_t dim = 0;
    float eps = 0;
    float* residual = nullptr;    ///< (n_rows, dim), updated
    const void* delta = nullptr;  ///< (n_rows, dim); nullptr adds nothing
    DType delta_dtype = DType::f32;
    const float* weight = nullptr;  ///< (dim)
    void* out = nullptr;            ///< (n_rows, dim)
    DType out_dtype = DType::f32;
};
void add_rms_norm(const AddRmsNorm& problem);

}  // namespace kvscope::kernels
