#include "engine/checkpoint/config_rules.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "engine/families/registry/registry.h"
#include "engine/files/checkpoint_error.h"

namespace kvscope::checkpoint {
namespace {

class Rules {
 public:
    explicit Rules(const std::filesystem::path& file) : file_(file) {}

    void within(std::string_view what, int64_t value, int64_t low, int64_t high) const {
        if (value >= low && value <= high) return;
        fail(std::string(what) + " is " + std::to_string(value) + ", expected " + std::to_string(low) + " to " +
             std::to_string(high));
    }

    void positive(std::string_view what, double value) const {
        if (std::isfinite(value) && value > 0) return;
        fail(std::string(what) + " is " + std::to_string(value) + ", expected a positive number");
    }

    [[noreturn]] void fail(const std::string& what) const { throw CheckpointError(file_, what); }

 private:
    const std::filesystem::path& file_;
};

void check_rope(const ModelConfig& c, const Rules& rules) {
    rules.positive("rope_theta", c.rope_theta);
    if (c.rope_theta <= 1) rules.fail("rope_theta is " + std::to_string(c.rope_theta) + ", expected more than 1");
    const RopeScaling& s = c.rope_scaling;
    rules.positive("the rope scaling factor", s.factor);
    rules.positive("the rope attention factor", s.attention_factor);
    if (s.kind == RopeScaling::Kind::llama3 || s.kind == RopeScaling::Kind::yarn) {
        rules.within("original_max_position_embeddings", s.original_context, 1, int64_t{1} << 40);
    }
    if (s.kind == RopeScaling::Kind::llama3) {
        rules.positive("low_freq_factor", s.low_freq_factor);
        rules.positive("high_freq_factor", s.high_freq_factor);
        if (s.high_freq_factor <= s.low_freq_factor) {
            rules.fail("high_freq_factor (" + std::to_string(s.high_freq_factor) +
                       ") must be greater than low_freq_factor (" + std::to_string(s.low_freq_factor) + ")");
        }
    }
    if (s.kind == RopeScaling::Kind::yarn) {
        rules.positive("beta_fast", s.beta_fast);
        rules.positive("beta_slow", s.beta_slow);
    }
    if (!c.rope_factors.empty() && c.rope_factors.size() != static_cast<size_t>(c.head_dim / 2)) {
        rules.fail("has " + std::to_string(c.rope_factors.size()) + " rope factors, expected " +
                   std::to_string(c.head_dim / 2) + " (half the head size)");
    }
    for (const float factor : c.rope_factors) rules.positive("a rope factor", static_cast<double>(factor));
}

}  // namespace

void check_config(const ModelConfig& c, const std::filesystem::path& file) {
    const Rules rules(file);
    constexpr int64_t widest = int64_t{1} << 22;
    rules.within("the number of layers", c.n_layers, 1, 512);
    rules.within("the number of attention heads", c.n_heads, 1, 4096);
    rules.within("the number of key/value heads", c.n_kv_heads, 1, c.n_heads);
    if (c.n_heads % c.n_kv_heads != 0) {
        rules.fail("has " + std::to_string(c.n_heads) + " attention heads and " + std::to_string(c.n_kv_heads) +
                   " key/value heads; the first must be a multiple of the second");
    }
    rules.within("the head size", c.head_dim, 2, 4096);
    if (c.head_dim % 2 != 0) rules.fail("the head size is " + std::to_string(c.head_dim) + ", expected an even number");
    rules.within("the hidden size", c.hidden_size, 1, widest);
    rules.within("the intermediate size", c.intermediate_size, 1, widest);
    rules.within("heads times head size", int64_t{c.n_heads} * c.head_dim, 1, widest);
    rules.within("the vocabulary size", c.vocab_size, 1, int64_t{1} << 24);
    rules.within("the context length", c.context_length, 1, int64_t{1} << 40);
    if (!std::isfinite(c.rms_norm_eps) || c.rms_norm_eps < 0) {
        rules.fail("rms_norm_eps is " + std::to_string(c.rms_norm_eps) + ", expected a number of at least 0");
    }
    for (const int32_t id : c.eos_ids) rules.within("an end-of-text token id", id, 0, c.vocab_size - 1);
    if (c.bos_id != -1) rules.within("the begin-of-text token id", c.bos_id, 0, c.vocab_size - 1);
    for (const int64_t window : c.sliding_window) rules.within("a sliding window", window, 0, int64_t{1} << 40);
    check_rope(c, rules);
}

double default_yarn_attention_factor(double factor) { return factor <= 1 ? 1.0 : 0.1 * std::log(factor) + 1.0; }

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& c) {
    const int64_t hidden = c.hidden_size;
    const int64_t inner = c.intermediate_size;
    const int64_t q = int64_t{c.n_heads} * c.head_dim;
    const int64_t kv = int64_t{c.n_kv_heads} * c.head_dim;
    const TensorNames& names = family_named(c.family).tensors;
    std::vector<ExpectedTensor> all;
    std::string prefix, hf_prefix, gguf_prefix;
    const auto add = [&](const std::string& name, std::vector<int64_t> shape, const char* ending = ".weight",
                         int64_t n_rotated_heads = 0) {
        const NameInFiles& own = names.at(name);
        all.push_back({prefix + name + ending, hf_prefix + own.hf + ending, gguf_prefix + own.gguf + ending,
                       std::move(shape), n_rotated_heads});
    };
    const auto linear = [&](const char* name, int64_t out, int64_t in, bool bias, int64_t n_rotated_heads = 0) {
        add(name, {out, in}, ".weight", n_rotated_heads);
        if (bias) add(name, {out}, ".bias", n_rotated_heads);
    };
    add("model.embed_tokens", {c.vocab_size, hidden});
    add("model.norm", {hidden});
    if (!c.tied_embeddings) add("lm_head", {c.vocab_size, hidden});
    for (int layer = 0; layer < c.n_layers; ++layer) {
        const NameInFiles& layers = names.at("model.layers");
        const std::string number = "." + std::to_string(layer) + ".";
        prefix = "model.layers" + number;
        hf_prefix = layers.hf + number;
        gguf_prefix = layers.gguf + number;
        add("input_layernorm", {hidden});
        add("post_attention_layernorm", {hidden});
        linear("self_attn.q_proj", q, hidden, c.qkv_bias, c.n_heads);
        linear("self_attn.k_proj", kv, hidden, c.qkv_bias, c.n_kv_heads);
        linear("self_attn.v_proj", kv, hidden, c.qkv_bias);
        linear("self_attn.o_proj", hidden, q, c.output_bias);
        if (c.qk_norm) {
            add("self_attn.q_norm", {c.head_dim});
            add("self_attn.k_norm", {c.head_dim});
        }
        linear("mlp.gate_proj", inner, hidden, c.mlp_bias);
        linear("mlp.up_proj", inner, hidden, c.mlp_bias);
        linear("mlp.down_proj", hidden, inner, c.mlp_bias);
    }
    return all;
}

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text = "(";
    for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return text + ")";
}

}  // namespace kvscope::checkpoint
