#include "engine/model/transformer.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"

namespace kvscope::engine {

Transformer::Transformer(checkpoint::ModelConfig config, Weights weights, kernels::DType dtype)
    : config_(std::move(config)), weights_(std::move(weights)), dtype_(dtype) {
    // libtorch's waiting threads would occupy cores that the kernels' threads need.
    at::set_num_threads(1);
    std::vector<double> frequencies;
    for (const float frequency : config_.inverse_frequencies()) frequencies.push_back(double{frequency});
    const double factor{config_.rope_attention_factor()};
    turns_ = std::make_shared<const RotationTable>(frequencies, 1.0, config_.context_length);
    rotations_ = factor == 1.0
                     ? turns_
                     : std::make_shared<const RotationTable>(std::move(frequencies), factor, config_.context_length);
}

at::ScalarType Transformer::scalar_type() const { return dtype_ == kernels::DType::bf16 ? at::kBFloat16 : at::kFloat; }

policies::ModelShape shape_of(const checkpoint::ModelConfig& config) {
    return {config.n_layers, config.n_heads, config.n_kv_heads, config.head_dim};
}

policies::ModelShape Transformer::shape() const { return shape_of(config_); }

float Transformer::attention_scale() const { return static_cast<float>(1.0 / std::sqrt(double(config_.head_dim))); }

at::Tensor Transformer::embed(std::span<const int32_t> ids) const {
    for (const int32_t id : ids) {
        if (id < 0 || id >= config_.vocab_size)
            throw UsageError("token id " + std::to_string(id) + " is outside the model's vocabulary of size " +
                             std::to_string(config_.vocab_size));
    }
    return weights_.embedding.pick(ids);
}

Transformer Transformer::on(const ComputeDevice& device) const {
    if (device.backend == device_.backend) return *this;
    Transformer there = *this;
    there.host_ = std::make_shared<const Transformer>(*this);
    there.device_ = device;
    there.weights_ = weights_.on(device);
    there.turns_ = turns_->on(device.place);
    there.rotations_ = rotations_ == turns_ ? there.turns_ : rotations_->on(device.place);
    there.own_operations_ = kernel_operations(*device.backend);
    there.operations_ = there.own_operations_.get();
    return there;
}

Transformer Transformer::computed_with(const Operations& operations) const {
    Transformer other = on_processor();
    other.operations_ = &operations;
    return other;
}

at::Tensor Transformer::project(int layer, const at::Tensor& residual) const {
    const auto& w = weights_.layers[static_cast<size_t>(layer)];
    const at::Tensor x = operations_->norm(residual, w.input_norm, config_.rms_norm_eps, dtype_);
    at::Tensor qkv = operations_->product(x, w.qkv, w.qkv_bias);
    if (config_.qk_norm) {
        operations_->norm_heads(qkv, 0, config_.n_heads, w.q_norm, config_.rms_norm_eps);
        operations_->norm_heads(qkv, int64_t{config_.n_heads} * config_.head_dim, config_.n_kv_heads, w.k_norm,
                                config_.rms_norm_eps);
    }
    return qkv;
}

at::Tensor Transformer::project_plainly(int layer, const at::Tensor& residual) const {
    const auto& w = weights_.layers[static_cast<size_t>(layer)];
    return operations_->product(operations_->norm(residual, w.input_norm, config_.rms_norm_eps, dtype_), w.qkv, {});
}

bool Transformer::is_projected_plainly(int layer) const {
    return !config_.qk_norm && !weights_.layers[static_cast<size_t>(layer)].qkv_bias.defined();
}

void Transformer::rotate(at::Tensor& qkv, const Rotation& rotation) const {
    operations_->rotate(qkv, config_.n_heads + config_.n_kv_heads, rotation);
}

void Transformer::finish_layer(int layer, const at::Tensor& attention, at::Tensor& residual) const {
    const auto& w = weights_.layers[static_cast<size_t>(layer)];
    const at::Tensor projected = operations_->product(attention, w.output, w.output_bias);
    const at::Tensor x = operations_->add_norm(residual, projected, w.mlp_norm, config_.rms_norm_eps);
    const at::Tensor activated = operations_->swiglu(operations_->product(x, w.gate_up, w.gate_up_bias));
    operations_->add(residual, operations_->product(activated, w.down, w.down_bias));
}

at::Tensor Transformer::logits_there(const at::Tensor& residual) const {
    // Steps of bf16 exceed most gaps between the largest logits, so logits are f32.
    return operations_->logits(operations_->norm(residual, weights_.final_norm, config_.rms_norm_eps, dtype_),
                               weights_.head);
}

at::Tensor Transformer::logits(const at::Tensor& residual) const { return logits_there(residual).cpu(); }

at::Tensor Transformer::logits(const at::Tensor& residual, HostBuffer& room) const {
    return room.copy(logits_there(residual));
}

}  // namespace kvscope::engine
