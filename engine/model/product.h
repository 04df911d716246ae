#pragma once

#include <ATen/core/Tensor.h>

namespace kvscope::engine {

/// x W^T + bias: x (n, in), weight (out, in), both contiguous and of one type, f32 or bf16; bias (out) f32, or
/// undefined. Never the library's product: what it makes of a row depends on how many rows and threads there are, so
/// that a run would answer differently in other company.
/// @returns (n, out) of the same type
at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

}  // namespace kvscope::engine
