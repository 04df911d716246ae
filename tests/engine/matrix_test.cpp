#include "engine/model/matrix.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string>

#include "engine/checkpoint/weight_memory.h"
#include "engine/model/product.h"
#include "engine/model/weights.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/matrix_of.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

bool are_same(const at::Tensor& a, const at::Tensor& b) {
    return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
           std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// Reads a tensor of the file as numbers of the given type, with the file's reader.
at::Tensor read(const checkpoint::Checkpoint& checkpoint, const std::string& name, const at::Tensor& like) {
    at::Tensor numbers = like.new_empty(like.sizes());
    const auto n = static_cast<size_t>(numbers.numel());
    if (numbers.scalar_type() == at::kFloat)
        checkpoint.read_f32(name, {numbers.data_ptr<float>(), n});
    else
        checkpoint.read_bf16(name, {static_cast<uint16_t*>(numbers.data_ptr()), n});
    return numbers;
}

/// Returns activations with different numbers.
at::Tensor activations(int64_t rows, const at::Tensor& weight) {
    at::Tensor x = weight.to(at::kFloat).new_empty({rows, weight.size(1)});
    for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] = static_cast<float>(i * 37 % 101 - 50) / 32.0f;
    return x.to(weight.scalar_type());
}

int64_t bytes_of(const engine::Matrix& matrix) {
    int64_t n = 0;
    for (const auto& part : matrix.parts()) n += static_cast<int64_t>(part.data.nbytes());
    return n;
}

}  // namespace

TEST_CASE("weights keep the file's format and have the numbers that the file's reader returns") {
    const std::string file = GENERATE("gguf-llama-quantised/model.gguf", "gguf-qwen2-q8_0/model.gguf",
                                      "gguf-qwen3-q4_0/model.gguf", "gguf-llama-q3_k_m/model.gguf",
                                      "gguf-qwen2-q2_k/model.gguf", "gguf-llama-f32/model.gguf", "smollm2-tied");
    const auto dtype = GENERATE(kernels::DType::f32, kernels::DType::bf16);
    CAPTURE(file, name_of(dtype));
    const auto checkpoint = checkpoint::open_checkpoint(test_data("models/" + file));
    engine::SilentProgress progress;
    const engine::Weights weights = engine::load_weights(*checkpoint, dtype, progress);
    const auto& config = checkpoint->config();
    const int64_t d = config.head_dim, q = config.n_heads * d, kv = config.n_kv_heads * d,
                  inner = config.intermediate_size;
    int64_t held = 0, largest = 0;
    const auto count = [&](const engine::Matrix& matrix) {
        held += bytes_of(matrix);
        for (const auto& part : matrix.parts())  // each part is expanded for a product of many rows
            if (part.format != kernels::weight_format_of(dtype))
                largest = std::max(largest, part.rows * matrix.columns() * (dtype == kernels::DType::f32 ? 4 : 2));
    };
    const auto check = [&](const engine::Matrix& matrix, int64_t first, int64_t rows, const std::string& name) {
        CAPTURE(name, checkpoint->stored_type(name));
        const at::Tensor numbers = matrix.numbers(first, rows);
        CHECK(are_same(numbers, read(*checkpoint, name, numbers)));
    };
    for (int layer = 0; layer < config.n_layers; ++layer) {
        const std::string prefix = "model.layers." + std::to_string(layer) + ".";
        const engine::LayerWeights& w = weights.layers[static_cast<size_t>(layer)];
        check(w.qkv, 0, q, prefix + "self_attn.q_proj.weight");
        check(w.qkv, q, kv, prefix + "self_attn.k_proj.weight");
        check(w.qkv, q + kv, kv, prefix + "self_attn.v_proj.weight");
        check(w.output, 0, config.hidden_size, prefix + "self_attn.o_proj.weight");
        check(w.gate_up, 0, inner, prefix + "mlp.gate_proj.weight");
        check(w.gate_up, inner, inner, prefix + "mlp.up_proj.weight");
        check(w.down, 0, config.hidden_size, prefix + "mlp.down_proj.weight");
        for (const auto* matrix : {&w.qkv, &w.output, &w.gate_up, &w.down}) count(*matrix);
        for (const auto* matrix : {&w.qkv, &w.output, &w.gate_up, &w.down}) {
            const engine::Matrix plain = matrix_of(matrix->numbers());
            CHECK(bytes_of(*matrix) <= bytes_of(plain));
            for (const int64_t rows : {1, 13, 60, 400}) {  // products of stored weights and of expanded ones
                const at::Tensor x = activations(rows, plain.numbers());
                CHECK(are_same(engine::product(x, *matrix, {}, at::kFloat), engine::product(x, plain, {}, at::kFloat)));
            }
        }
    }
    check(weights.embedding, 0, config.vocab_size, "model.embed_tokens.weight");
    const std::vector<int32_t> ids{5, 0, static_cast<int32_t>(config.vocab_size) - 1, 5};
    const at::Tensor picked = weights.embedding.pick(ids), all = weights.embedding.numbers().to(at::kFloat);
    for (size_t i = 0; i < ids.size(); ++i)
        CHECK(are_same(picked[static_cast<int64_t>(i)].contiguous(), all[ids[i]].contiguous()));

    // The predicted memory is the memory that is used.
    count(weights.embedding);
    if (!config.tied_embeddings) count(weights.head);
    int64_t vectors = 0;
    for (const auto& tensor : checkpoint->tensors())
        if (tensor.shape.size() < 2) vectors += tensor.shape[0] * 4;
    const checkpoint::WeightBytes bytes = checkpoint::count_weight_bytes(*checkpoint, dtype);
    CHECK(bytes.held == held + vectors);
    CHECK(bytes.largest == largest);
    CHECK(bytes.written_out.empty());
}

TEST_CASE("a file's type is kept if a kernel reads it and it is smaller than the model's type") {
    using kernels::DType, kernels::WeightFormat, checkpoint::held_format;
    CHECK(held_format("q4_K", 512, DType::bf16) == WeightFormat::q4_k);
    CHECK(held_format("q4_K", 576, DType::bf16) == WeightFormat::bf16);  // no whole blocks
    CHECK(held_format("BF16", 576, DType::f32) == WeightFormat::bf16);
    CHECK(held_format("f16", 576, DType::f32) == WeightFormat::f16);
    CHECK(held_format("f16", 576, DType::bf16) == WeightFormat::bf16);
    CHECK(held_format("F32", 576, DType::bf16) == WeightFormat::bf16);
    CHECK(held_format("iq4_nl", 576, DType::bf16) == WeightFormat::bf16);
    CHECK(held_format("iq4_nl", 576, DType::f32) == WeightFormat::f32);
}
