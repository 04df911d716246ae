#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "engine/model/matrix.h"
#include "engine/model/rotation_table.h"
#include "kernels/backend.h"
#include "kernels/types.h"
#include "policies/api/observations.h"

namespace kvscope::engine {

/// Causal attention of n tokens to m entries, the last n of which are the tokens' own.
struct AttentionRead {
    policies::ModelShape shape;
    float scale = 0;          ///< logits are scale * (q . k)
    at::Tensor queries = {};  ///< (n, H d) after RoPE; rows may have a stride
    at::Tensor keys = {},
               values = {};  ///< (G, at least m, d) keys after RoPE; heads are contiguous, with equal strides
    std::span<const float> masses = {};        ///< (m) number of tokens in each entry
    std::span<const int64_t> first_keys = {};  ///< (n) first entry that each query sees; empty if all see entry 0
    at::Tensor out = {};                       ///< (n, H d) receives sum n_j exp(e_j) v_j / sum n_j exp(e_j)
    std::span<double> column_sums = {};  ///< (H, m) n_j exp(e_j) / sum n exp(e) is added for each query; may be empty
};

/// Operations of a transformer: kernels, or libtorch functions with gradients. Rows are tokens. A result overwrites its
/// argument, or becomes a new tensor if the argument is part of a gradient graph.
class Operations {
 public:
    virtual ~Operations() = default;

    [[nodiscard]] virtual at::ScalarType activations(kernels::DType model) const = 0;

    /// Returns x / sqrt(mean(x^2) + eps) * weight for each row of x, (n, dim) f32. weight: (dim) f32
    [[nodiscard]] virtual at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, float eps,
                                          kernels::DType model) const = 0;

    /// Normalizes `heads` vectors in each row of x in place, from column `first` on.
    virtual void norm_heads(at::Tensor& x, int64_t first, int64_t heads, const at::Tensor& weight, float eps) const = 0;

    /// Adds delta to residual, (n, dim) f32, and returns the normalized sum.
    [[nodiscard]] virtual at::Tensor add_norm(at::Tensor& residual, const at::Tensor& delta, const at::Tensor& weight,
                                              float eps) const = 0;

    virtual void add(at::Tensor& residual, const at::Tensor& delta) const = 0;

    /// Returns x W^T + bias, (n, out). x: (n, in); weight: (out, in); bias: (out) f32 or undefined
    [[nodiscard]] virtual at::Tensor product(const at::Tensor& x, const Matrix& weight,
                                             const at::Tensor& bias) const = 0;

    /// Returns x W^T in f32 for any type of activations.
    [[nodiscard]] virtual at::Tensor logits(const at::Tensor& x, const Matrix& weight) const = 0;

    /// Rotates the first `heads` vectors in each row of x (kernels/rope.h).
    virtual void rotate(at::Tensor& x, int64_t heads, const Rotation& rotation) const = 0;

    /// Returns silu(gate) * up, (n, inner), for rows (n, 2 inner) with the gate first.
    [[nodiscard]] virtual at::Tensor swiglu(const at::Tensor& gate_up) const = 0;

    virtual void attend(std::span<AttentionRead> reads) const = 0;
};

[[nodiscard]] const Operations& kernel_operations();
/// Returns the operations of `kernels/` on a device, except attention, which uses the backend directly.
[[nodiscard]] std::shared_ptr<const Operations> kernel_operations(const kernels::Backend& backend);

/// Returns f32 operations with gradients with respect to x and to keys and values in caches, but not to weights.
/// Results depend neither on other rows nor on the number of threads.
[[nodiscard]] const Operations& differentiable_operations();
/// Returns x y^T of two f32 arrays, (n, d) and (m, d), with gradients for both.
[[nodiscard]] at::Tensor differentiable_product(const at::Tensor& x, const at::Tensor& y);

}  // namespace kvscope::engine
