#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "engine/model/matrix.h"
#include "engine/model/rotation_table.h"
#include "kernels/backend.h"
#include "kernels/types.h"
#include "policies/interface/observations.h"

namespace kvscope::engine {

/// Queries of consecutive tokens and the entries that they read, of which the last n are the queries' own. Each sees
/// those up to its own.
struct AttentionRead {
    policies::ModelShape shape;
    float scale = 0;                           ///< logits are scale * (q . k)
    at::Tensor queries = {};                   ///< (n, H d) rotated; rows may be parts of wider ones
    at::Tensor keys = {}, values = {};         ///< (G, at least m, d) keys rotated, contiguous heads of equal strides
    std::span<const float> masses = {};        ///< (m) tokens that an entry stands for
    std::span<const int64_t> first_keys = {};  ///< (n) the first entry that each query sees; empty: entry 0
    at::Tensor out = {};                       ///< (n, H d) sum exp(e_j) v_j / sum n_j exp(e_j); becomes the result
    std::span<double> column_sums = {};        ///< (H, m) n_j exp(e_j) / sum n exp(e), added over the queries, or empty
};

/// What a transformer computes with: the kernels, or functions of libtorch that it can differentiate. Rows are tokens.
/// What is said to become something is written to in place, or replaced by another array where it is part of a graph.
class Operations {
 public:
    virtual ~Operations() = default;

    /// The type of activations in a model of the given one.
    virtual at::ScalarType activations(kernels::DType model) const = 0;

    /// x / sqrt(mean(x^2) + eps) * weight for each row. x: (n, dim) f32; weight: (dim) f32
    /// @returns (n, dim) activations
    virtual at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, float eps, kernels::DType model) const = 0;

    /// The same for each of `heads` vectors of a row from column `first` on, of activations; x becomes the result.
    virtual void norm_heads(at::Tensor& x, int64_t first, int64_t heads, const at::Tensor& weight, float eps) const = 0;

    /// residual, (n, dim) f32, becomes residual + delta, activations. @returns its norm, activations
    virtual at::Tensor add_norm(at::Tensor& residual, const at::Tensor& delta, const at::Tensor& weight,
                                float eps) const = 0;

    /// residual, (n, dim) f32, becomes residual + delta, activations.
    virtual void add(at::Tensor& residual, const at::Tensor& delta) const = 0;

    /// x W^T + bias: x (n, in) activations, W (out, in) of the model's type, bias (out) f32 or undefined.
    /// @returns (n, out) activations
    virtual at::Tensor product(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias) const = 0;

    /// x W^T in f32 whatever the activations are.
    virtual at::Tensor logits(const at::Tensor& x, const Matrix& weight) const = 0;

    /// The first `heads` vectors of each row of x become rotated (kernels/rope.h).
    virtual void rotate(at::Tensor& x, int64_t heads, const Rotation& rotation) const = 0;

    /// silu(gate) * up of rows (n, 2 inner), the gate first. @returns (n, inner)
    virtual at::Tensor swiglu(const at::Tensor& gate_up) const = 0;

    /// Causal attention, each on its own.
    virtual void attend(std::span<AttentionRead> reads) const = 0;
};

/// Those of `kernels/`. Activations are of the model's type.
const Operations& kernel_operations();
/// The same on a device, where nothing attends: that is asked of the backend itself.
std::shared_ptr<const Operations> kernel_operations(const kernels::Backend& backend);

/// Those that libtorch differentiates, by x and by a cache's keys and values, not by weights. Activations are f32, and
/// weights are taken as f32 as they are stored, so that a gradient is one of f32 arithmetic whatever the model's type.
/// Results depend neither on other rows nor on the number of threads: products in either direction are the kernels'.
const Operations& differentiable_operations();
/// x y^T of two arrays of f32, (n, d) and (m, d), which libtorch differentiates by both.
at::Tensor differentiable_product(const at::Tensor& x, const at::Tensor& y);

}  // namespace kvscope::engine
