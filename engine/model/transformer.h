#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "engine/checkpoint/config.h"
#include "engine/device/compute_device.h"
#include "engine/device/host_buffer.h"
#include "engine/model/operations.h"
#include "engine/model/rotation_table.h"
#include "engine/model/weights.h"
#include "kernels/types.h"
#include "policies/api/observations.h"

namespace kvscope::engine {

[[nodiscard]] policies::ModelShape shape_of(const checkpoint::ModelConfig& config);

/// A decoder-only transformer of the Llama kind without attention, which prefill and decoding add. Activations have the
/// model's type, the residual stream is f32, and rows are tokens. Constant after construction and thread-safe.
class Transformer {
 public:
    Transformer(checkpoint::ModelConfig config, Weights weights, kernels::DType dtype);

    [[nodiscard]] Transformer on(const ComputeDevice& device) const;
    [[nodiscard]] const ComputeDevice& device() const { return device_; }
    [[nodiscard]] const kernels::Backend& backend() const { return *device_.backend; }
    /// Returns the model on the processor, valid as long as this model or a copy exists.
    [[nodiscard]] const Transformer& on_processor() const { return host_ ? *host_ : *this; }

    /// Returns the model on the processor with other operations and the same weights.
    [[nodiscard]] Transformer computed_with(const Operations& operations) const;
    [[nodiscard]] const Operations& operations() const { return *operations_; }

    [[nodiscard]] const checkpoint::ModelConfig& config() const { return config_; }
    [[nodiscard]] const Weights& weights() const { return weights_; }
    [[nodiscard]] kernels::DType dtype() const { return dtype_; }
    [[nodiscard]] at::ScalarType scalar_type() const;
    [[nodiscard]] at::TensorOptions options() const {
        return at::TensorOptions().dtype(scalar_type()).device(device_.place);
    }
    [[nodiscard]] policies::ModelShape shape() const;
    [[nodiscard]] float attention_scale() const;

    /// Returns the residual stream (n, hidden) f32 of token ids. @throws UsageError for an id outside the vocabulary
    [[nodiscard]] at::Tensor embed(std::span<const int32_t> ids) const;

    /// Returns queries, keys and values before RoPE, normalized if the model does so: (n, (H + 2G) d).
    [[nodiscard]] at::Tensor project(int layer, const at::Tensor& residual) const;

    /// Projects the normalized residual without biases and without query and key norms. Returns (n, (H + 2G) d).
    [[nodiscard]] at::Tensor project_plainly(int layer, const at::Tensor& residual) const;
    /// Whether project() and project_plainly() agree, because the layer has neither biases nor norms.
    [[nodiscard]] bool is_projected_plainly(int layer) const;

    /// Cosines and sines for rotate(). Do not write to them.
    using Rotation = engine::Rotation;
    [[nodiscard]] Rotation rotation(std::span<const int64_t> positions) const {
        return rotations_->rotation(positions);
    }

    /// Returns rotations by differences of positions, for vectors that are already rotated.
    [[nodiscard]] Rotation turn(std::span<const int64_t> differences) const { return turns_->rotation(differences); }
    /// Factor by which a rotation scales vectors (YaRN).
    [[nodiscard]] float attention_factor() const { return config_.rope_attention_factor(); }

    /// Rotates the queries and keys in `qkv` (n, (H + 2G) d) in place.
    void rotate(at::Tensor& qkv, const Rotation& rotation) const;

    /// Adds the output projection of `attention` (n, H d), then the MLP, to `residual` (n, hidden) f32.
    void finish_layer(int layer, const at::Tensor& attention, at::Tensor& residual) const;

    /// Returns logits (n, vocabulary) f32 for rows of the residual stream, in the processor's memory.
    [[nodiscard]] at::Tensor logits(const at::Tensor& residual) const;
    /// Returns logits in memory that the next call reuses.
    [[nodiscard]] at::Tensor logits(const at::Tensor& residual, HostBuffer& room) const;

 private:
    [[nodiscard]] at::Tensor logits_there(const at::Tensor& residual) const;

    checkpoint::ModelConfig config_;
    Weights weights_;
    kernels::DType dtype_;
    ComputeDevice device_;
    std::shared_ptr<const Transformer>
        host_;  ///< the model on the processor; nullptr if this model is itself on the processor
    std::shared_ptr<const RotationTable> rotations_, turns_;
    std::shared_ptr<const Operations> own_operations_;
    const Operations* operations_ = &kernel_operations();
};

}  // namespace kvscope::engine
