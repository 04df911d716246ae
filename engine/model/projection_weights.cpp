#include "engine/model/projection_weights.h"

#include <ATen/core/Tensor.h>

#include <string>

#include "engine/common/engine_error.h"

namespace kvscope::engine {

policies::Projection copy_projection_weights(const Transformer& model, int layer, policies::Projected which) {
    const auto shape = model.shape();
    if (layer < 0 || layer >= shape.n_layers)
        throw UsageError("layer " + std::to_string(layer) + " does not exist: the model has layers 0 to " +
                         std::to_string(shape.n_layers - 1));
    const auto& weights = model.on_processor().weights().layers[static_cast<size_t>(layer)];
    const bool is_keys = which == policies::Projected::keys;
    policies::Projection projection;
    projection.n_out = shape.n_kv_heads * shape.head_dim;
    projection.n_in = model.config().hidden_size;
    projection.is_normalised = is_keys && model.config().qk_norm;
    const int64_t first = int64_t{shape.n_heads + (is_keys ? 0 : shape.n_kv_heads)} * shape.head_dim;
    const auto n = static_cast<size_t>(projection.n_out) * static_cast<size_t>(projection.n_in);
    const at::Tensor numbers = weights.qkv.numbers(first, projection.n_out).to(at::kFloat);
    projection.weight.assign(numbers.const_data_ptr<float>(), numbers.const_data_ptr<float>() + n);
    if (weights.qkv_bias.defined()) {
        const float* bias = weights.qkv_bias.const_data_ptr<float>() + first;
        projection.bias.assign(bias, bias + projection.n_out);
    }
    return projection;
}

}  // namespace kvscope::engine
