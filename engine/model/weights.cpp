#include "engine/model/weights.h"

#include <span>

#include "engine/checkpoint/weight_memory.h"
#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"

namespace kvscope::engine {
namespace {

class Loader {
 public:
    Loader(const checkpoint::Checkpoint& checkpoint, kernels::DType dtype) : checkpoint_(checkpoint), dtype_(dtype) {}

    /// Stacks tensors by rows. Adjacent tensors of the same format become one part.
    Matrix stacked(const std::vector<std::pair<std::string, int64_t>>& names, int64_t columns) const {
        Matrix matrix(columns, dtype_);
        for (size_t first = 0; first < names.size();) {
            const auto format = format_of(names[first].first, columns);
            size_t end = first;
            int64_t rows = 0;
            while (end < names.size() && format_of(names[end].first, columns) == format) rows += names[end++].second;
            const at::Tensor data = matrix.add_rows(format, rows);
            for (int64_t row = 0; first < end; ++first) {
                read_rows(names[first].first, format, data.narrow(0, row, names[first].second));
                row += names[first].second;
            }
        }
        return matrix;
    }
    Matrix whole(const std::string& name, int64_t rows, int64_t columns) const {
        return stacked({{name, rows}}, columns);
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
    kernels::WeightFormat format_of(const std::string& name, int64_t columns) const {
        return checkpoint::held_format(checkpoint_.stored_type(name), columns, dtype_);
    }

    void read_rows(const std::string& name, kernels::WeightFormat format, const at::Tensor& into) const {
        const auto count = static_cast<size_t>(into.numel());
        if (format != kernels::weight_format_of(dtype_))
            checkpoint_.read_stored(name, std::span(static_cast<std::byte*>(into.data_ptr()), into.nbytes()));
        else if (dtype_ == kernels::DType::bf16)
            checkpoint_.read_bf16(name, std::span(static_cast<uint16_t*>(into.data_ptr()), count));
        else
            checkpoint_.read_f32(name, std::span(into.data_ptr<float>(), count));
    }

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
    w.qkv = loader.stacked({{attention + "q_proj.weight", q_rows},
                            {attention + "k_proj.weight", kv_rows},
                            {attention + "v_proj.weight", kv_rows}},
                           hidden);
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
    w.gate_up = loader.stacked({{mlp + "gate_proj.weight", inner}, {mlp + "up_proj.weight", inner}}, hidden);
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

Weights Weights::on(const ComputeDevice& device) const {
    Weights there = *this;
    const auto move = [&](Matrix& matrix) { matrix = matrix.on(device); };
    const auto move_vector = [&](at::Tensor& vector) {
        if (vector.defined()) vector = vector.to(device.place);
    };
    const bool tied = head.parts()[0].data.is_same(embedding.parts()[0].data);
    move(there.embedding);
    if (tied)
        there.head = there.embedding;
    else
        move(there.head);
    move_vector(there.final_norm);
    for (LayerWeights& layer : there.layers) {
        for (Matrix* matrix : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down}) move(*matrix);
        for (at::Tensor* vector : {&layer.input_norm, &layer.qkv_bias, &layer.q_norm, &layer.k_norm, &layer.output_bias,
                                   &layer.mlp_norm, &layer.gate_up_bias, &layer.down_bias})
            move_vector(*vector);
    }
    return there;
}

Weights load_weights(const checkpoint::Checkpoint& checkpoint, kernels::DType dtype, Progress& progress) {
    const auto& config = checkpoint.config();
    const Loader loader(checkpoint, dtype);
    progress.begin("load", config.n_layers + 1, "parts");
    Weights weights;
    weights.embedding = loader.whole("model.embed_tokens.weight", config.vocab_size, config.hidden_size);
    weights.head = config.tied_embeddings ? weights.embedding
                                          : loader.whole("lm_head.weight", config.vocab_size, config.hidden_size);
    weights.final_norm = loader.vector("model.norm.weight", config.hidden_size);
    progress.advance(1);
    for (int layer = 0; layer < config.n_layers; ++layer) {
        progress.throw_if_stopped();
        weights.layers.push_back(load_layer(loader, config, layer));
        progress.advance(layer + 2);
    }
    return weights;
}

}  // namespace kvscope::engine
