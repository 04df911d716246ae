#pragma once

#include <cstdint>
#include <optional>

#include "kernels/types.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {

/// y = x W^T + bias for any number of rows: those of a decode step, bound by reading W once from memory, and those of a
/// prompt. The bias is added before y is rounded.
struct Linear {
    DType dtype = DType::bf16;  ///< of x and the weight: f32 or bf16; accumulated in f32
    int64_t n_rows = 0;
    int64_t in = 0;
    int64_t out = 0;
    const void* x = nullptr;       ///< (n_rows, in)
    int64_t x_stride = 0;          ///< elements between rows; 0 means in
    const void* weight = nullptr;  ///< (out, in), contiguous, in `format`
    /// Multiplied are the numbers of expand_weights in `dtype`, bit by bit, without a copy of the whole weight.
    /// nullopt: the weight is of `dtype`.
    std::optional<WeightFormat> format = {};
    const float* bias = nullptr;  ///< (out); nullptr for none
    void* y = nullptr;            ///< (n_rows, out)
    DType y_dtype = DType::f32;   ///< f32 or bf16
    int64_t y_stride = 0;         ///< elements between rows; 0 means out
};

/// A row's result depends neither on the other rows in the call, nor on their number, nor on that of the threads: to
/// the last bit, at each SIMD level.
/// @throws std::invalid_argument for negative sizes, null arrays, a type that is neither f32 nor bf16, or an `in` that
///         is not made of the format's whole blocks.
void linear(const Linear& problem);

}  // namespace kvscope::kernels
