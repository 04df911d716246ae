#pragma once

#include <ATen/core/Tensor.h>

namespace kvscope::engine {

/// Returns x W^T + bias, (n, out) of the inputs' type. libtorch's product is not used: its rounding depends on the
/// number of rows and threads, so a run's answer would depend on the other runs in its batch.
/// @param x (n, in), f32 or bf16, contiguous
/// @param weight (out, in) of the same type, contiguous
/// @param bias (out) f32, or undefined
at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

}  // namespace kvscope::engine
