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
#include "policies/interface/observations.h"

namespace kvscope::engine {

policies::ModelShape shape_of(const checkpoint::ModelConfig& config);

/// A decoder-only transformer of the Llama kind without attention, which prefill and decoding add. Activations have the
/// model's type, the residual stream is f32, and rows are tokens. Constant after construction and thread-safe.
class Transformer {
 public:
    Transformer(checkpoint::ModelConfig config, Weights weights, kernels::DType dtype);

    Transformer on(const ComputeDevice& device) const;
    const ComputeDevice& device() const { return device_; }
    const kernels::Backend& backend() const { return *device_.backend; }
    /// Returns the model on the processor, valid as long as this model or a copy exists.
    const Transformer& on_processor() const { return host_ ? *host_ : *this; }

    /// Returns the model on the processor with other operations and the same weights.
    Transformer computed_with(const Operations& operations) const;
    const Operations& operations() const { return *operations_; }

    const checkpoint::ModelConfig& config() const { return config_; }
    const Weights& weights() const { return weights_; }
    kernels::DType dtype() const { return dtype_; }
    at::ScalarType scalar_type() const;
    at::TensorOptions options() const { return at::TensorOptions().dtype(scalar_type()).device(device_.place); }
    policies::ModelShape shape() const;
    float attention_scale() const;

    /// Returns the residual stream (n, hidden) f32 of token ids. @throws UsageError for an id outside the vocabulary
    at::Tensor embed(std::span<const int32_t> ids) const;

    /// Returns queries, keys and values before RoPE, normalized if the model does so: (n, (H + 2G) d).
    at::Tensor project(int layer, const at::Tensor& residual) const;

    /// Projects the normalized residual without biases and without query and key norms. Returns (n, (H + 2G) d).
    at::Tensor project_plainly(int layer, const at::Tensor& residual) const;
    /// Whether project() and project_plainly() agree, because the layer has neither biases nor norms.
    bool is_projected_plainly(int layer) const;

    /// Cosines and sines for rotate(). Do not write to them.
    using Rotation = engine::Rotation;
    Rotation rotation(std::span<const int64_t> positions) const { return rotations_->rotation(positions); }

    /// Returns rotations by differences of positions, for vectors that are already rotated.
    Rotation turn(std::span<const int64_t> differences) const { return turns_->rotation(differences); }
    /// Factor by which a rotation scales vectors (YaRN).
    float attention_factor() const { return config_.rope_attention_factor(); }

    /// Rotates the queries and keys in `qkv` (n, (H + 2G) d) in place.
    void rotate(at::Tensor& qkv, const Rotation& rotation) const;

    /// Adds the output projection of `attention` (n, H d), then the MLP, to `residual` (n, hidden) f32.
    void finish_layer(int layer, const at::Tensor& attention, at::Tensor& residual) const;

    /// Returns logits (n, vocabulary) f32 for rows of the residual stream, in the processor's memory.
    at::Tensor logits(const at::Tensor& residual) const;
    /// Returns logits in memory that the next call reuses.
    at::Tensor logits(const at::Tensor& residual, HostBuffer& room) const;

 private:
    at::Tensor logits_there(const at::Tensor& residual) const;

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
