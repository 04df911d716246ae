#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "engine/checkpoint/config.h"
#include "engine/device/compute_device.h"
#include "engine/device/host_room.h"
#include "engine/model/operations.h"
#include "engine/model/rotation_table.h"
#include "engine/model/weights.h"
#include "kernels/types.h"
#include "policies/interface/observations.h"

namespace kvscope::engine {

policies::ModelShape shape_of(const checkpoint::ModelConfig& config);

/// A decoder-only transformer of the Llama kind without its attention: what happens before it (norm, projections,
/// rotation) and after it (output projection, MLP). Prefill and decode put the attention between. Activations are in
/// the model's type, the residual stream in f32, all arrays on its device. n rows are n tokens, of one prompt or of
/// many runs. Const after construction, usable from several threads.
class Transformer {
 public:
    Transformer(checkpoint::ModelConfig config, Weights weights, kernels::DType dtype);

    /// The same model on another device, with a copy of its weights there.
    /// @throws what libtorch throws where there is no room
    Transformer on(const ComputeDevice& device) const;
    const ComputeDevice& device() const { return device_; }
    const kernels::Backend& backend() const { return *device_.backend; }
    /// The same model on the processor; itself where it is there. Lives as long as this and its copies.
    const Transformer& on_processor() const { return host_ ? *host_ : *this; }

    /// The same model on the processor, its weights shared, computed with other operations; this one uses the kernels.
    Transformer computed_with(const Operations& operations) const;
    const Operations& operations() const { return *operations_; }

    const checkpoint::ModelConfig& config() const { return config_; }
    const Weights& weights() const { return weights_; }
    kernels::DType dtype() const { return dtype_; }
    at::ScalarType scalar_type() const;
    /// Of arrays of the model's type on its device.
    at::TensorOptions options() const { return at::TensorOptions().dtype(scalar_type()).device(device_.place); }
    policies::ModelShape shape() const;
    float attention_scale() const;

    /// Residual stream (n, hidden) f32 of token ids.
    /// @throws UsageError for an id outside the vocabulary.
    at::Tensor embed(std::span<const int32_t> ids) const;

    /// Queries, keys and values before rotation, q and k norms applied: (n, (H + 2G) d).
    at::Tensor project(int layer, const at::Tensor& residual) const;

    /// x W of the normalised residual alone, without biases and norms of queries and keys: (n, (H + 2G) d).
    at::Tensor project_plainly(int layer, const at::Tensor& residual) const;
    /// Whether `project` makes the same.
    bool is_projected_plainly(int layer) const;

    /// Cosines and sines for `rotate`; not to be written to.
    using Rotation = engine::Rotation;
    Rotation rotation(std::span<const int64_t> positions) const { return rotations_->rotation(positions); }

    /// The same by which vectors that are rotated already are turned on, without the attention factor that they have;
    /// differences may be negative.
    Rotation turn(std::span<const int64_t> differences) const { return turns_->rotation(differences); }
    /// What a rotation multiplies vectors by besides turning them (YaRN).
    float attention_factor() const { return config_.rope_attention_factor(); }

    /// The queries and keys of `qkv` (n, (H + 2G) d) become rotated.
    void rotate(at::Tensor& qkv, const Rotation& rotation) const;

    /// `residual` (n, hidden) f32 becomes the sum of it with output projection and MLP of `attention` (n, H d).
    void finish_layer(int layer, const at::Tensor& attention, at::Tensor& residual) const;

    /// Logits (n, vocabulary) f32 of residual rows, in the processor's memory.
    at::Tensor logits(const at::Tensor& residual) const;
    /// The same in a room, for those who ask again and again.
    at::Tensor logits(const at::Tensor& residual, HostRoom& room) const;

 private:
    at::Tensor logits_there(const at::Tensor& residual) const;

    checkpoint::ModelConfig config_;
    Weights weights_;
    kernels::DType dtype_;
    ComputeDevice device_;
    std::shared_ptr<const Transformer> host_;  ///< of a model on another device
    std::shared_ptr<const RotationTable> rotations_, turns_;
    std::shared_ptr<const Operations> own_operations_;
    const Operations* operations_ = &kernel_operations();
};

}  // namespace kvscope::engine
