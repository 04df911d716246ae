#pragma once

#include <ATen/core/Tensor.h>

namespace kvscope::engine {

/// Returns x W^T + bias, (n, out), for x (n, in) and weight (out, in) of one type, f32 or bf16, contiguous. libtorch's
/// product is not used: its rounding depends on the number of rows and threads.
/// @param bias (out) f32, or undefined
at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

}  // namespace kvscope::engine
