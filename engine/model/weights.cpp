#include "engine/model/weights.h"

#include <ATen/Functions.h>

#include <span>

#include "engine/common/error.h"

namespace kvscope::engine {
namespace {

class Loader {
 public:
    Loader(const checkpoint::Checkpoint& checkpoint, kernels::DType dtype) : checkpoint_(checkpoint), dtype_(dtype) {}

    at::Tensor matrix(int64_t rows, int64_t columns) const {
        const auto type = dtype_ == kernels::DType::bf16 ? at::kBFloat16 : at::kFloat;
        return at::empty({rows, columns}, at::TensorOptions().dtype(type));
    }

    void read_rows(const std::string& name, const at::Tensor& into, int64_t row_begin, int64_t n_rows) const {
        const int64_t columns = into.size(1);
        const auto count = static_cast<size_t>(n_rows * columns);
        if (dtype_ == kernels::DType::bf16) {
            auto* data = static_cast<uint16_t*>(into.data_ptr()) + row_begin * columns;
            checkpoint_.read_bf16(name, std::span<uint16_t>(data, count));
        } else {
            auto* data = into.data_ptr<float>() + row_begin * columns;
            checkpoint_.read_f32(name, std::span<float>(data, count));
        }
    }

    at::Tensor whole(const std::string& name, int64_t rows, int64_t columns) const {
        at::Tensor tensor = matrix(rows, columns);
        read_rows(name, tensor, 0, rows);
        return tensor;
    }

    void read_vector(const std::string& name, const at::Tensor& into, int64_t begin, int64_t count) const {
        checkpoint_.read_f32(name, std::span<float>(into.data_ptr<float>() + begin, static_cast<size_t>(count)));
    }

    at::Tensor vector(const std::string& name, int64_t count) const {
        at::Tensor tensor = at::empty({count}, at::kFloat);
        read_vector(name, tensor, 0, count);
        return tensor;
    }

 private:
    const checkpoint::Checkpoint& checkpoint_;
    kernels::DType dtype_;
};

LayerWeights load_layer(const Loader& loader, const checkpoint::ModelConfig& config, int layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    const std::string attention = prefix + "self_attn.";
    const std::string mlp = prefix + "mlp.";
    const int64_t hidden = config.hidden_size;
    const int64_t inner = config.intermediate_size;
    const int64_t d = config.head_dim;
    const int64_t q_rows = config.n_heads * d;
    const int64_t kv_rows = config.n_kv_heads * d;

    LayerWeights w;
    w.input_norm = loader.vector(prefix + "input_layernorm.weight", hidden);
    w.mlp_norm = loader.vector(prefix + "post_attention_layernorm.weight", hidden);
    w.qkv = loader.matrix(q_rows + 2 * kv_rows, hidden);
    loader.read_rows(attention + "q_proj.weight", w.qkv, 0, q_rows);
    loader.read_rows(attention + "k_proj.weight", w.qkv, q_rows, kv_rows);
    loader.read_rows(attention + "v_proj.weight", w.qkv, q_rows + kv_rows, kv_rows);
    if (config.qkv_bias) {
        w.qkv_bias = at::empty({q_rows + 2 * kv_rows}, at::kFloat);
        loader.read_vector(attention + "q_proj.bias", w.qkv_bias, 0, q_rows);
        loader.read_vector(attention + "k_proj.bias", w.qkv_bias, q_rows, kv_rows);
        loader.read_vector(attention + "v_proj.bias", w.qkv_bias, q_rows + kv_rows, kv_rows);
    }
    if (config.qk_norm) {
        w.q_norm = loader.vector(attention + "q_norm.weight", d);
        w.k_norm = loader.vector(attention + "k_norm.weight", d);
    }
    w.output = loader.whole(attention + "o_proj.weight", hidden, q_rows);
    if (config.output_bias) w.output_bias = loader.vector(attention + "o_proj.bias", hidden);
    w.gate_up = loader.matrix(2 * inner, hidden);
    loader.read_rows(mlp + "gate_proj.weight", w.gate_up, 0, inner);
    loader.read_rows(mlp + "up_proj.weight", w.gate_up, inner, inner);
    w.down = loader.whole(mlp + "down_proj.weight", hidden, inner);
    if (config.mlp_bias) {
        w.gate_up_bias = at::empty({2 * inner}, at::kFloat);
        loader.read_vector(mlp + "gate_proj.bias", w.gate_up_bias, 0, inner);
        loader.read_vector(mlp + "up_proj.bias", w.gate_up_bias, inner, inner);
        w.down_bias = loader.vector(mlp + "down_proj.bias", hidden);
    }
    return w;
}

}  // namespace

Weights load_weights(const checkpoint::Checkpoint& checkpoint, kernels::DType dtype, Progress& progress) {
    const auto& config = checkpoint.config();
    const Loader loader(checkpoint, dtype);
    progress.begin("load", config.n_layers + 1);
    Weights weights;
    weights.embedding = loader.whole("model.embed_tokens.weight", config.vocab_size, config.hidden_size);
    weights.head = config.tied_embeddings ? weights.embedding
                                          : loader.whole("lm_head.weight", config.vocab_size, config.hidden_size);
    weights.final_norm = loader.vector("model.norm.weight", config.hidden_size);
    progress.advance(1);
    for (int layer = 0; layer < config.n_layers; ++layer) {
        if (progress.cancelled()) throw Cancelled();
        weights.layers.push_back(load_layer(loader, config, layer));
        progress.advance(layer + 2);
    }
    return weights;
}

}  // namespace kvscope::engine
