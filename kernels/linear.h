#pragma once

#include <cstdint>
#include <optional>

#include "kernels/types.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {

/// y = x W^T + bias for any number of rows. The bias is added before y is rounded.
struct Linear {
    DType dtype = DType::bf16;  ///< type of x and the weight: f32 or bf16; sums are f32
    int64_t n_rows = 0;
    int64_t in = 0;
    int64_t out = 0;
    const void* x = nullptr;       ///< (n_rows, in)
    int64_t x_stride = 0;          ///< elements between rows; 0 means in
    const void* weight = nullptr;  ///< (out, in), contiguous, in `format`
    /// Format of the weight; nullopt means `dtype`. Products use exactly the results of expand_weights() in `dtype`.
    std::optional<WeightFormat> format = {};
    const float* bias = nullptr;  ///< (out), or nullptr
    void* y = nullptr;            ///< (n_rows, out)
    DType y_dtype = DType::f32;   ///< f32 or bf16
    int64_t y_stride = 0;         ///< elements between rows; 0 means out
};

/// At a given SIMD level, a row's result has the same bits for any other rows and number of threads.
/// Throws std::invalid_argument for negative sizes, null arrays, another type, or an `in` with an incomplete block.
void linear(const Linear& problem);

}  // namespace kvscope::kernels
