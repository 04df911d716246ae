#pragma once

#include <ATen/core/Tensor.h>

namespace kvscope::engine {

/// Returns x W^T + bias, (n, out), for contiguous x (n, in) and weight (out, in), both f32 or bf16. Unlike libtorch's
/// product, the result does not depend on the number of rows or threads. @param bias (out) f32, or undefined
[[nodiscard]] at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

}  // namespace kvscope::engine
