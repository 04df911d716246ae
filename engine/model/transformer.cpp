#include "engine/model/transformer.h"

#include <ATen/Functions.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "engine/model/product.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/swiglu.h"

namespace kvscope::engine {

Transformer::Transformer(checkpoint::ModelConfig config, Weights weights, kernels::DType dtype)
    : config_(std::move(config)), weights_(std::move(weights)), dtype_(dtype) {
    std::vector<double> frequencies;
    for (const float frequency : config_.inverse_frequencies()) frequencies.push_back(double{frequency});
    rotations_ = std::make_unique<const RotationTable>(std::move(frequencies), double{config_.rope_attention_factor()},
                                                       config_.context_length);
}

at::ScalarType Transformer::scalar_type() const { return dtype_ == kernels::DType::bf16 ? at::kBFloat16 : at::kFloat; }

policies::ModelShape Transformer::shape() const {
    return {config_.n_layers, config_.n_heads, config_.n_kv_heads, config_.head_dim};
}

float Transformer::attention_scale() const { return static_cast<float>(1.0 / std::sqrt(double(config_.head_dim))); }

at::Tensor Transformer::embed(std::span<const int32_t> ids) const {
    for (const int32_t id : ids) {
        if (id < 0 || id >= config_.vocab_size)
            throw UsageError("token id " + std::to_string(id) + " is outside the model's vocabulary of " +
                             std::to_string(config_.vocab_size));
    }
    const at::Tensor index = at::empty({static_cast<int64_t>(ids.size())}, at::kLong);
    for (size_t i = 0; i < ids.size(); ++i) index.data_ptr<int64_t>()[i] = ids[i];
    return weights_.embedding.index_select(0, index).to(at::kFloat);
}

at::Tensor Transformer::project(int layer, const at::Tensor& residual) const {
    const auto& w = weights_.layers[static_cast<size_t>(layer)];
    const int64_t rows = residual.size(0);
    at::Tensor x = at::empty({rows, config_.hidden_size}, scalar_type());
    kernels::rms_norm({.n_rows = rows,
                       .dim = config_.hidden_size,
                       .eps = config_.rms_norm_eps,
                       .x = residual.const_data_ptr(),
                       .weight = w.input_norm.const_data_ptr<float>(),
                       .out = x.data_ptr(),
                       .out_dtype = dtype_});
    at::Tensor qkv = product(x, w.qkv, w.qkv_bias);
    if (config_.qk_norm) {
        const size_t bytes = kernels::size_of(dtype_);
        auto normalise = [&](const at::Tensor& weight, int64_t first_column, int64_t heads) {
            auto* data = static_cast<char*>(qkv.data_ptr()) + static_cast<size_t>(first_column) * bytes;
            kernels::rms_norm({.n_rows = rows,
                               .heads = heads,
                               .dim = config_.head_dim,
                               .eps = config_.rms_norm_eps,
                               .x = data,
                               .x_dtype = dtype_,
                               .x_stride = qkv.size(1),
                               .weight = weight.const_data_ptr<float>(),
                               .out = data,
                               .out_dtype = dtype_,
                               .out_stride = qkv.size(1)});
        };
        normalise(w.q_norm, 0, config_.n_heads);
        normalise(w.k_norm, int64_t{config_.n_heads} * config_.head_dim, config_.n_kv_heads);
    }
    return qkv;
}

void Transformer::rotate(at::Tensor& qkv, const Rotation& rotation) const {
    kernels::rope({.dtype = dtype_,
                   .n_tokens = qkv.size(0),
                   .n_heads = config_.n_heads + config_.n_kv_heads,
                   .head_dim = config_.head_dim,
                   .x = qkv.data_ptr(),
                   .token_stride = qkv.size(1),
                   .cosines = rotation.cosines.const_data_ptr<float>(),
                   .sines = rotation.sines.const_data_ptr<float>()});
}

void Transformer::finish_layer(int layer, const at::Tensor& attention, at::Tensor& residual) const {
    const auto& w = weights_.layers[static_cast<size_t>(layer)];
    const int64_t rows = residual.size(0);
    const at::Tensor projected = product(attention, w.output, w.output_bias);
    at::Tensor x = at::empty({rows, config_.hidden_size}, scalar_type());
    kernels::add_rms_norm({.n_rows = rows,
                           .dim = config_.hidden_size,
                           .eps = config_.rms_norm_eps,
                           .residual = residual.data_ptr<float>(),
                           .delta = projected.const_data_ptr(),
                           .delta_dtype = dtype_,
                           .weight = w.mlp_norm.const_data_ptr<float>(),
                           .out = x.data_ptr(),
                           .out_dtype = dtype_});
    const at::Tensor gate_up = product(x, w.gate_up, w.gate_up_bias);
    const int64_t inner = config_.intermediate_size;
    at::Tensor activated = at::empty({rows, inner}, scalar_type());
    const auto* gate = static_cast<const char*>(gate_up.const_data_ptr());
    kernels::swiglu({.dtype = dtype_,
                     .n_rows = rows,
                     .dim = inner,
                     .gate = gate,
                     .up = gate + static_cast<size_t>(inner) * kernels::size_of(dtype_),
                     .in_stride = 2 * inner,
                     .out = activated.data_ptr()});
    residual.add_(product(activated, w.down, w.down_bias));
}

at::Tensor Transformer::logits(const at::Tensor& residual) const {
    const int64_t rows = residual.size(0);
    at::Tensor x = at::empty({rows, config_.hidden_size}, scalar_type());
    kernels::rms_norm({.n_rows = rows,
                       .dim = config_.hidden_size,
                       .eps = config_.rms_norm_eps,
                       .x = residual.const_data_ptr(),
                       .weight = weights_.final_norm.const_data_ptr<float>(),
                       .out = x.data_ptr(),
                       .out_dtype = dtype_});
    // In f32 whatever the model's type: bf16 is coarser than most gaps between the best tokens and would drown small
    // divergences.
    at::Tensor result = at::empty({rows, config_.vocab_size}, at::kFloat);
    kernels::linear({.dtype = dtype_,
                     .n_rows = rows,
                     .in = config_.hidden_size,
                     .out = config_.vocab_size,
                     .x = x.const_data_ptr(),
                     .weight = weights_.head.const_data_ptr(),
                     .y = result.data_ptr()});
    return result;
}

}  // namespace kvscope::engine
