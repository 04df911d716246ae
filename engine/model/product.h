#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::engine {

/// Returns x W^T + bias, (n, out), for contiguous x (n, in) and weight (out, in), both f32 or bf16. Unlike libtorch's
/// product, the result does not depend on the number of rows or threads. @param bias (out) f32, or undefined
[[nodiscard]] at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// Returns x x^T, (width, width), of x (width, n), bit-identical for any number of threads.
[[nodiscard]] std::vector<float> gram_matrix(std::span<const float> x, size_t width);

}  // namespace kvscope::engine
