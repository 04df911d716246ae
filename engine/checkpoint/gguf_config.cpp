#include "engine/checkpoint/gguf_config.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "common/json.h"
#include "common/utf8.h"
#include "common/words.h"
#include "engine/checkpoint/config_rules.h"
#include "engine/checkpoint/known_fields.h"
#include "engine/checkpoint/model_name.h"
#include "engine/families/registry/registry.h"

namespace kvscope::checkpoint {
namespace {

constexpr size_t longest_name = 500;

class Metadata {
 public:
    explicit Metadata(const GgufFile& file) : file_(file) {
        const auto name = file.text("general.architecture");
        if (!name) file.fail("has no general.architecture; " + supported_models());
        architecture_ = *name;
    }

    const GgufFile& file() const { return file_; }
    const std::string& architecture() const { return architecture_; }

    std::optional<int64_t> integer(std::string_view name) const { return file_.integer(key(name)); }
    std::optional<double> number(std::string_view name) const { return file_.number(key(name)); }
    std::optional<std::string> text(std::string_view name) const { return file_.text(key(name)); }
    const GgufArray* array(std::string_view name) const { return file_.array(key(name)); }
    bool has(std::string_view name) const { return file_.has(key(name)); }

    std::optional<int> size(std::string_view name) const {
        std::optional<int64_t> value;
        if (const GgufArray* list = array(name)) {
            if (list->numbers.empty()) file_.fail(key(name) + " is an empty or overlong list");
            const double first = list->numbers.front();
            if (std::any_of(list->numbers.begin(), list->numbers.end(), [&](double n) { return n != first; })) {
                file_.fail(key(name) + " differs from layer to layer; " + supported_models());
            }
            if (!(first >= 0 && first <= std::numeric_limits<int>::max())) file_.fail(key(name) + " is out of range");
            value = static_cast<int64_t>(first);
        } else {
            value = integer(name);
        }
        if (!value) return std::nullopt;
        if (*value < 0 || *value > std::numeric_limits<int>::max()) {
            file_.fail(key(name) + " is " + std::to_string(*value) + ", expected a number of 1 to 9 digits");
        }
        return static_cast<int>(*value);
    }

    int required_size(std::string_view name) const {
        const auto value = size(name);
        if (!value) file_.fail("has no metadata key " + key(name));
        return *value;
    }

    std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }

 private:
    const GgufFile& file_;
    std::string architecture_;
};

const std::string& known_name(const ModelConfig& c) { return c.metadata_name.empty() ? c.name : c.metadata_name; }

void read_names(const GgufFile& file, ModelConfig& c) {
    c.metadata_name = utf8_lossy(file.text("general.name").value_or(""));
    if (c.metadata_name.size() > longest_name) c.metadata_name.clear();
    c.name = name_of_gguf(file.path(), c.metadata_name);
}

const Family& family_of(const Metadata& meta) {
    const GgufFile& file = meta.file();
    if (const auto type = file.text("general.type"); type && *type != "model") {
        file.fail("holds a file of the type \"" + *type + "\", expected a model");
    }
    const std::string& name = meta.architecture();
    const auto name_of_model = [&] {
        ModelConfig named;
        read_names(file, named);
        return known_name(named) + " " + file.text("general.basename").value_or("");
    };
    const Family* family = find_family([&](const Family& f) { return f.gguf_architecture == name; }, name_of_model);
    if (family == nullptr) {
        const std::string kind = kind_of_refused_model(name);
        file.fail("holds a model of the architecture \"" + name + "\"" + (kind.empty() ? "" : " (" + kind + ")") +
                  "; " + supported_models());
    }
    if (meta.integer("expert_count").value_or(0) > 0)
        file.fail(meta.key("expert_count") + " is " + std::to_string(*meta.integer("expert_count")) +
                  ": a mixture of experts; " + supported_models());
    refuse_unsupported_keys(file, *family);
    return *family;
}

void read_sizes(const Metadata& meta, const Family& family, const GgufTensors& tensors, ModelConfig& c) {
    const GgufFile& file = meta.file();
    const Keys& keys = family.keys;
    c.n_layers = meta.required_size(keys.n_layers.gguf);
    c.hidden_size = meta.required_size(keys.hidden_size.gguf);
    c.intermediate_size = meta.required_size(keys.intermediate_size.gguf);
    c.n_heads = meta.required_size(keys.n_heads.gguf);
    c.n_kv_heads = meta.size(keys.n_kv_heads.gguf).value_or(c.n_heads);
    if (c.n_heads == 0) file.fail(meta.key(keys.n_heads.gguf) + " is 0, expected at least 1");
    c.head_dim = meta.size(keys.head_dim.gguf).value_or(c.hidden_size / c.n_heads);
    const int value_dim = meta.size("attention.value_length").value_or(c.hidden_size / c.n_heads);
    const int rotated = meta.size("rope.dimension_count").value_or(c.head_dim);
    if (value_dim != c.head_dim || rotated != c.head_dim) {
        file.fail("has keys of " + std::to_string(c.head_dim) + " numbers, values of " + std::to_string(value_dim) +
                  " and rotates " + std::to_string(rotated) + " of them; expected the same number for all three");
    }
    c.context_length = meta.required_size(keys.context_length.gguf);
    const auto eps = meta.number(keys.rms_norm_eps.gguf);
    if (!eps) file.fail("has no metadata key " + meta.key(keys.rms_norm_eps.gguf));
    c.rms_norm_eps = static_cast<float>(*eps);

    const std::string name = std::string(family.tensors.at("model.embed_tokens").gguf) + ".weight";
    const auto embedding = tensors.find(name);
    if (embedding == tensors.end() || embedding->second->shape.size() != 2) {
        file.fail("has no tensor " + name + " of two dimensions");
    }
    c.vocab_size = embedding->second->shape[0];
    if (const auto stated = meta.integer(keys.vocab_size.gguf); stated && *stated != c.vocab_size) {
        file.fail(meta.key(keys.vocab_size.gguf) + " is " + std::to_string(*stated) + ", but " + name + " has " +
                  std::to_string(c.vocab_size) + " rows");
    }
    const GgufArray* tokens = file.array("tokenizer.ggml.tokens");
    if (tokens != nullptr && tokens->size > static_cast<uint64_t>(c.vocab_size)) {
        file.fail("has " + std::to_string(tokens->size) + " tokens, but " + name + " has " +
                  std::to_string(c.vocab_size) + " rows");
    }
}

void read_rope(const Metadata& meta, const char* theta, ModelConfig& c) {
    const GgufFile& file = meta.file();
    c.rope_theta = meta.number(theta).value_or(10000.0);
    RopeScaling& s = c.rope_scaling;
    const std::string type = meta.text("rope.scaling.type").value_or("linear");
    auto factor = meta.number("rope.scaling.factor");
    if (!factor) factor = meta.number("rope.scale_linear");
    s.factor = factor.value_or(0) == 0 ? 1.0 : *factor;
    if (type == "linear") {
        if (s.factor != 1.0) s.kind = RopeScaling::Kind::linear;
    } else if (type == "yarn") {
        s.kind = RopeScaling::Kind::yarn;
        s.original_context = meta.integer("rope.scaling.original_context_length").value_or(c.context_length);
        s.beta_fast = meta.number("rope.scaling.yarn_beta_fast").value_or(32);
        s.beta_slow = meta.number("rope.scaling.yarn_beta_slow").value_or(1);
        s.attention_factor =
            meta.number("rope.scaling.yarn_attn_factor").value_or(default_yarn_attention_factor(s.factor)) *
            meta.number("rope.scaling.attn_factor").value_or(1);
        if (meta.number("rope.scaling.yarn_ext_factor").value_or(1) != 1 ||
            meta.number("rope.scaling.yarn_log_multiplier").value_or(0) != 0) {
            file.fail(
                "has a variant of yarn rope scaling that is not supported (yarn_ext_factor, yarn_log_multiplier)");
        }
    } else if (type != "none") {
        file.fail("has rope scaling of type \"" + type + "\"; supported are none, linear and yarn");
    } else {
        s.factor = 1.0;
    }
    if (type != "yarn" && meta.number("rope.scaling.attn_factor").value_or(1) != 1)
        file.fail(meta.key("rope.scaling.attn_factor") + " is " +
                  std::to_string(*meta.number("rope.scaling.attn_factor")) + " for rope scaling of the type \"" + type +
                  "\", expected 1; other values are supported for yarn");
}

/// Reads llama.cpp's `is_swa`: one flag per layer, or a number n if every n-th layer has no window.
void read_sliding_window(const Metadata& meta, const Keys& keys, ModelConfig& c) {
    const int64_t window = meta.integer(keys.sliding_window.gguf).value_or(0);
    const char* const pattern_name = keys.window_layers.gguf;
    c.sliding_window.assign(static_cast<size_t>(c.n_layers), window);
    if (window == 0 || !meta.has(pattern_name)) return;
    if (const GgufArray* pattern = meta.array(pattern_name)) {
        if (pattern->numbers.size() != c.sliding_window.size()) {
            meta.file().fail(meta.key(pattern_name) + " has " + std::to_string(pattern->size) +
                             " entries, expected one for each of the " + std::to_string(c.n_layers) + " layers");
        }
        for (size_t layer = 0; layer < c.sliding_window.size(); ++layer) {
            if (pattern->numbers[layer] == 0) c.sliding_window[layer] = 0;
        }
        return;
    }
    const int64_t period = meta.integer(pattern_name).value_or(0);
    for (int64_t layer = 0; period > 0 && layer < c.n_layers; ++layer) {
        if (layer % period == period - 1) c.sliding_window[static_cast<size_t>(layer)] = 0;
    }
}

using Words = std::set<std::string, std::less<>>;

/// Token texts that end generation in llama.cpp (llama-vocab.cpp).
const Words end_tokens = words(R"(
    <|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> <|endoftext|> </s> <|eom_id|>
    <EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <turn|> <|tool_response> <｜end▁of▁sentence｜>
    [e~[ <|plamo:eos|>)");
const Words pad_tokens = words("<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]");
const Words repository_tokens = words("<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>");
const Words separator_tokens = words("<|file_sep|>");
const Words pretokenizers_with_bos = words("llama3 llama-v3 llama-bpe tekken");

class SpecialTokens {
 public:
    SpecialTokens(const GgufFile& file, int64_t vocab_size) : file_(file), vocab_size_(vocab_size) {
        const GgufArray* tokens = file.array("tokenizer.ggml.tokens");
        if (tokens != nullptr) tokens_ = &tokens->texts;
    }

    /// Returns a token id from the metadata if it is in the vocabulary, else `fallback`, as in llama.cpp.
    int32_t id(const char* name, int32_t fallback = -1) const {
        const auto given = file_.integer("tokenizer.ggml." + std::string(name) + "_token_id");
        const bool is_known = given && *given >= 0 && *given < vocab_size_;
        const int64_t value = is_known ? *given : fallback;
        return value >= 0 && value < vocab_size_ ? static_cast<int32_t>(value) : -1;
    }

    int32_t first_of(const Words& spellings) const {
        if (tokens_ == nullptr) return -1;
        const auto found = std::find_if(tokens_->begin(), tokens_->end(),
                                        [&](const std::string& token) { return spellings.contains(token); });
        return found == tokens_->end() ? -1 : static_cast<int32_t>(found - tokens_->begin());
    }

    std::vector<int32_t> all_of(const Words& spellings) const {
        std::vector<int32_t> ids;
        for (size_t i = 0; tokens_ != nullptr && i < tokens_->size(); ++i) {
            if (spellings.contains((*tokens_)[i])) ids.push_back(static_cast<int32_t>(i));
        }
        return ids;
    }

 private:
    const GgufFile& file_;
    int64_t vocab_size_;
    const std::vector<std::string>* tokens_ = nullptr;
};

void read_special_tokens(const GgufFile& file, ModelConfig& c) {
    const std::string kind = file.text("tokenizer.ggml.model").value_or("");
    const std::string pre = file.text("tokenizer.ggml.pre").value_or("");
    const SpecialTokens special(file, c.vocab_size);
    const bool is_sentencepiece = kind == "llama";
    c.bos_id = special.id("bos", is_sentencepiece ? 1 : -1);

    c.eos_ids = special.all_of(end_tokens);
    c.eos_ids.push_back(special.id("eos", is_sentencepiece ? 2 : -1));
    for (const char* name : {"eot", "eom"}) c.eos_ids.push_back(special.id(name));
    const int32_t pad = special.id("fim_pad");
    const int32_t repository = special.id("fim_rep");
    const int32_t separator = special.id("fim_sep");
    c.eos_ids.push_back(pad >= 0 ? pad : special.first_of(pad_tokens));
    c.eos_ids.push_back(repository >= 0 ? repository : special.first_of(repository_tokens));
    c.eos_ids.push_back(separator >= 0 ? separator : special.first_of(separator_tokens));
    std::erase(c.eos_ids, -1);
    std::sort(c.eos_ids.begin(), c.eos_ids.end());
    c.eos_ids.erase(std::unique(c.eos_ids.begin(), c.eos_ids.end()), c.eos_ids.end());

    c.add_bos =
        file.boolean("tokenizer.ggml.add_bos_token").value_or(is_sentencepiece || pretokenizers_with_bos.contains(pre));
}

}  // namespace

ModelConfig read_gguf_config(const GgufFile& file, const GgufTensors& tensors) {
    const Metadata meta(file);
    ModelConfig c;
    const Family& family = family_of(meta);
    c.family = family.name;
    read_names(file, c);
    read_sizes(meta, family, tensors, c);
    read_rope(meta, family.keys.rope_theta.gguf, c);
    check_config(c, file.path());
    read_sliding_window(meta, family.keys, c);
    read_special_tokens(file, c);

    const TensorNames& names = family.tensors;
    const auto has_bias = [&](const Presence& part, const char* name) {
        return part.always ||
               tensors.contains(std::string(names.at("model.layers").gguf) + ".0." + names.at(name).gguf + ".bias");
    };
    c.qkv_bias = has_bias(family.qkv_bias, "self_attn.q_proj");
    c.output_bias = has_bias(family.output_bias, "self_attn.o_proj");
    c.mlp_bias = has_bias(family.mlp_bias, "mlp.gate_proj");
    c.qk_norm = family.qk_norm;
    c.tied_embeddings = !tensors.contains(std::string(names.at("lm_head").gguf) + ".weight");
    return c;
}

std::string config_as_json(const ModelConfig& c) {
    nlohmann::ordered_json json;
    json["model_type"] = family_named(c.family).hf_classes.front().model_type;
    json["_name_or_path"] = known_name(c);  // part of the fingerprint, so it must not depend on the file's name
    json["vocab_size"] = c.vocab_size;
    json["hidden_size"] = c.hidden_size;
    json["intermediate_size"] = c.intermediate_size;
    json["num_hidden_layers"] = c.n_layers;
    json["num_attention_heads"] = c.n_heads;
    json["num_key_value_heads"] = c.n_kv_heads;
    json["head_dim"] = c.head_dim;
    json["hidden_act"] = "silu";
    json["max_position_embeddings"] = c.context_length;
    json["rms_norm_eps"] = c.rms_norm_eps;
    json["rope_theta"] = c.rope_theta;
    if (c.rope_scaling.kind == RopeScaling::Kind::linear) {
        json["rope_scaling"] = {{"rope_type", "linear"}, {"factor", c.rope_scaling.factor}};
    } else if (c.rope_scaling.kind == RopeScaling::Kind::yarn) {
        json["rope_scaling"] = {{"rope_type", "yarn"},
                                {"factor", c.rope_scaling.factor},
                                {"original_max_position_embeddings", c.rope_scaling.original_context},
                                {"beta_fast", c.rope_scaling.beta_fast},
                                {"beta_slow", c.rope_scaling.beta_slow},
                                {"attention_factor", c.rope_scaling.attention_factor}};
    }
    if (!c.rope_factors.empty()) json["rope_factors"] = c.rope_factors;
    json["attention_bias"] = c.qkv_bias;
    json["mlp_bias"] = c.mlp_bias;
    json["tie_word_embeddings"] = c.tied_embeddings;
    if (std::any_of(c.sliding_window.begin(), c.sliding_window.end(), [](int64_t w) { return w != 0; })) {
        json["use_sliding_window"] = true;
        json["sliding_window"] = *std::max_element(c.sliding_window.begin(), c.sliding_window.end());
        auto& types = json["layer_types"];
        for (const int64_t w : c.sliding_window) types.push_back(w == 0 ? "full_attention" : "sliding_attention");
    }
    if (c.bos_id >= 0) json["bos_token_id"] = c.bos_id;
    json["eos_token_id"] = c.eos_ids;
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace kvscope::checkpoint
