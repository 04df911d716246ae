#include "engine/checkpoint/hf_config.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "common/utf8.h"
#include "engine/checkpoint/config_rules.h"
#include "engine/checkpoint/known_fields.h"
#include "engine/checkpoint/model_name.h"
#include "engine/families/registry/registry.h"
#include "engine/files/checkpoint_error.h"
#include "engine/files/file_reader.h"
#include "engine/files/json_fields.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const JsonFields& config, const std::string& found) {
    const std::string kind = kind_of_refused_model(found);
    config.fail("describes a model of type \"" + found + "\"" + (kind.empty() ? "" : " (" + kind + ")") + "; " +
                supported_models());
}

const Family& family_of(const JsonFields& config, const std::function<std::string()>& model_name) {
    const auto type = config.text("model_type");
    if (!type) config.fail("has no model_type; " + supported_models());
    const auto has_class = [](const Family& family, std::string HfClass::*member, const std::string& value) {
        return std::any_of(family.hf_classes.begin(), family.hf_classes.end(),
                           [&](const HfClass& one) { return one.*member == value; });
    };
    const Family* family =
        find_family([&](const Family& f) { return has_class(f, &HfClass::model_type, *type); }, model_name);
    if (family == nullptr) refuse(config, *type);
    const auto architectures = config.texts("architectures");
    if (architectures && !architectures->empty() && !has_class(*family, &HfClass::architecture, architectures->front()))
        refuse(config, architectures->front());
    return *family;
}

void refuse_features(const JsonFields& config) {
    for (const char* name : {"num_local_experts", "num_experts", "n_routed_experts"}) {
        if (config.integer(name).value_or(0) > 0)
            config.fail(std::string("has ") + name + ": a mixture of experts; " + supported_models());
    }
    for (const char* name : {"vision_config", "text_config", "audio_config"}) {
        if (config.has(name))
            config.fail(std::string("has a ") + name + ": not a plain text model; " + supported_models());
    }
    if (const auto quantization = config.object("quantization_config")) {
        config.fail("has quantized weights (" + quantization->text("quant_method").value_or("unknown") +
                    "); supported are F32, F16 and BF16 weights in safetensors files, and all ggml quantizations in "
                    "GGUF files");
    }
    const std::string activation = config.text("hidden_act").value_or("silu");
    if (activation != "silu" && activation != "swish") {
        config.fail("hidden_act is \"" + activation + "\", expected \"silu\"; " + supported_models());
    }
}

int checked_int(const JsonFields& config, const char* name, int64_t value) {
    if (value < 0 || value > std::numeric_limits<int>::max()) {
        config.fail(std::string(name) + " is " + std::to_string(value) + ", expected a number of 1 to 9 digits");
    }
    return static_cast<int>(value);
}

void read_sizes(const JsonFields& config, const Family& family, ModelConfig& c) {
    const Keys& keys = family.keys;
    const auto size = [&](const NameInFiles& key) {
        return checked_int(config, key.hf, config.required_integer(key.hf));
    };
    // A null field has the value `if_null`. A missing field has the family's default, or `if_null` if that default is
    // 0.
    const auto size_or = [&](const NameInFiles& key, int64_t of_family, int64_t if_null) {
        const bool of_class = !config.mentions(key.hf) && of_family > 0;
        return checked_int(config, key.hf, config.integer(key.hf).value_or(of_class ? of_family : if_null));
    };
    c.n_layers = size(keys.n_layers);
    c.n_heads = size(keys.n_heads);
    c.hidden_size = size(keys.hidden_size);
    c.intermediate_size = size(keys.intermediate_size);
    c.vocab_size = config.required_integer(keys.vocab_size.hf);
    if (c.n_heads == 0) config.fail(std::string(keys.n_heads.hf) + " is 0, expected at least 1");
    c.n_kv_heads = size_or(keys.n_kv_heads, family.defaults.n_kv_heads, c.n_heads);
    c.head_dim = size_or(keys.head_dim, family.defaults.head_dim, c.hidden_size / c.n_heads);
    c.context_length = config.integer(keys.context_length.hf).value_or(family.defaults.context_length);
    c.rms_norm_eps = static_cast<float>(config.number(keys.rms_norm_eps.hf).value_or(1e-6));
}

void read_parts(const JsonFields& config, const Family& family, ModelConfig& c) {
    const auto has = [&](const Presence& part) {
        return part.always || (part.field != nullptr && config.boolean(part.field).value_or(false));
    };
    c.qkv_bias = has(family.qkv_bias);
    c.output_bias = has(family.output_bias);
    c.mlp_bias = has(family.mlp_bias);
    c.qk_norm = family.qk_norm;
    c.tied_embeddings = config.boolean("tie_word_embeddings").value_or(false);
}

void read_yarn(const JsonFields& rope, ModelConfig& c) {
    RopeScaling& s = c.rope_scaling;
    const auto or_default = [&](const char* name, double value) {
        const double given = rope.number(name).value_or(0);
        return given == 0 ? value : given;
    };
    s.beta_fast = or_default("beta_fast", 32);
    s.beta_slow = or_default("beta_slow", 1);
    s.truncate = rope.boolean("truncate").value_or(true);
    const double mscale = rope.number("mscale").value_or(0);
    const double mscale_all = rope.number("mscale_all_dim").value_or(0);
    if (const auto given = rope.number("attention_factor")) {
        s.attention_factor = *given;
    } else if (mscale != 0 && mscale_all != 0) {
        const auto scaled = [&](double m) { return 1 + m * (default_yarn_attention_factor(s.factor) - 1); };
        s.attention_factor = scaled(mscale) / scaled(mscale_all);
    } else {
        s.attention_factor = default_yarn_attention_factor(s.factor);
    }
}

/// Reads rope_theta and rope_scaling (transformers 4), or rope_parameters with both (transformers 5).
void read_rope(const JsonFields& config, const char* theta, ModelConfig& c) {
    const auto filled = [&](const char* name) {
        auto object = config.object(name);
        return object && !object->names().empty() ? object : std::nullopt;
    };
    auto rope = filled("rope_scaling");
    if (!rope) rope = filled("rope_parameters");
    c.rope_theta = config.number(theta).value_or(10000.0);
    double rotated_share = config.number("partial_rotary_factor").value_or(1.0);
    if (rope) {
        for (const char* nested : {"full_attention", "sliding_attention"}) {
            if (rope->has(nested))
                rope->fail("has different rotary parameters per type of layer; " + supported_models());
        }
        c.rope_theta = rope->number("rope_theta").value_or(c.rope_theta);
        rotated_share = rope->number("partial_rotary_factor").value_or(rotated_share);
    }
    if (rotated_share != 1.0) {
        config.fail("partial_rotary_factor is " + std::to_string(rotated_share) + ", expected 1; " +
                    supported_models());
    }
    if (!rope) return;

    auto type = rope->text("rope_type");
    if (!type) type = rope->text("type");
    RopeScaling& s = c.rope_scaling;
    if (!type || *type == "default") return;
    if (*type == "linear") {
        s.kind = RopeScaling::Kind::linear;
    } else if (*type == "llama3") {
        s.kind = RopeScaling::Kind::llama3;
    } else if (*type == "yarn") {
        s.kind = RopeScaling::Kind::yarn;
    } else {
        rope->fail("has rope scaling of type \"" + *type + "\"; supported are default, linear, llama3 and yarn");
    }
    // As in transformers, a value outside the object takes precedence over a value inside.
    auto original = config.integer("original_max_position_embeddings");
    if (!original) original = rope->integer("original_max_position_embeddings");
    s.original_context = original.value_or(c.context_length);
    if (const auto factor = rope->number("factor")) {
        s.factor = *factor;
    } else if (s.kind == RopeScaling::Kind::yarn && s.original_context > 0) {
        s.factor = static_cast<double>(c.context_length) / static_cast<double>(s.original_context);
    } else {
        rope->fail("has rope scaling of type \"" + *type + "\" without a factor");
    }
    if (s.kind == RopeScaling::Kind::llama3) {
        const auto low = rope->number("low_freq_factor");
        const auto high = rope->number("high_freq_factor");
        if (!low || !high) rope->fail("has llama3 rope scaling without low_freq_factor and high_freq_factor");
        s.low_freq_factor = *low;
        s.high_freq_factor = *high;
    }
    if (s.kind == RopeScaling::Kind::yarn) read_yarn(*rope, c);
}

/// Returns for each layer whether it has a sliding window, or nullopt if the field is missing.
std::optional<std::vector<bool>> sliding_layers(const JsonFields& config, const char* field, int n_layers) {
    const auto types = config.texts(field);
    if (!types) return std::nullopt;
    if (types->size() != static_cast<size_t>(n_layers)) {
        config.fail(std::string(field) + " has " + std::to_string(types->size()) +
                    " entries, expected one for each of the " + std::to_string(n_layers) + " layers");
    }
    std::vector<bool> slides;
    for (const std::string& type : *types) {
        slides.push_back(type == "sliding_attention");
        if (!slides.back() && type != "full_attention") {
            config.fail(std::string(field) + " has \"" + type +
                        "\"; supported are full_attention and sliding_attention. " + supported_models());
        }
    }
    return slides;
}

void read_sliding_window(const JsonFields& config, const Family& family, ModelConfig& c) {
    const auto& [exist, enabled_by, first_layer, default_first_layer, default_size] = family.windows;
    const char* const size = family.keys.sliding_window.hf;
    const char* const types = family.keys.window_layers.hf;
    c.sliding_window.assign(static_cast<size_t>(c.n_layers), 0);
    const auto slides = sliding_layers(config, types, c.n_layers);
    const int64_t window = config.integer(size).value_or(exist && !config.mentions(size) ? default_size : 0);
    if (!exist) {
        const std::string rest =
            " in a model of type " + *config.text("model_type") + ", whose layers have no window; ";
        if (window > 0 && window < c.context_length)
            config.fail(std::string(size) + " is " + std::to_string(window) + rest +
                        "expected null or a missing field. " + supported_models());
        if (slides && std::find(slides->begin(), slides->end(), true) != slides->end())
            config.fail(std::string(types) + " has \"sliding_attention\"" + rest + supported_models());
        return;
    }
    if (enabled_by != nullptr && !config.boolean(enabled_by).value_or(false)) return;
    const int64_t first =
        first_layer == nullptr ? 0 : std::max<int64_t>(0, config.integer(first_layer).value_or(default_first_layer));
    for (int64_t layer = 0; layer < c.n_layers; ++layer) {
        const auto i = static_cast<size_t>(layer);
        if (slides ? (*slides)[i] : layer >= first) c.sliding_window[i] = window;
    }
}

std::vector<int32_t> token_ids(const JsonFields& fields, const char* name) {
    std::vector<int32_t> ids;
    for (const int64_t id : fields.integers(name).value_or(std::vector<int64_t>())) {
        if (id < -1 || id > std::numeric_limits<int32_t>::max()) {
            fields.fail(std::string(name) + " holds " + std::to_string(id) + ", expected a token id");
        }
        if (id >= 0) ids.push_back(static_cast<int32_t>(id));
    }
    return ids;
}

/// Reads the end tokens from generation_config.json, or else from config.json, as transformers does.
void read_end_of_text(const JsonFields& config, const fs::path& directory, const Defaults& defaults, ModelConfig& c) {
    if (config.mentions("eos_token_id")) {
        c.eos_ids = token_ids(config, "eos_token_id");
    } else if (defaults.eos_id >= 0) {
        c.eos_ids = {defaults.eos_id};
    }
    const auto bos = token_ids(config, "bos_token_id");
    if (!bos.empty()) c.bos_id = bos.front();
    if (!config.mentions("bos_token_id")) c.bos_id = defaults.bos_id;

    const fs::path generation = directory / "generation_config.json";
    if (fs::exists(generation)) {
        const auto json = JsonFields::parse_file(generation);
        const JsonFields fields(json, generation);
        if (fields.has("eos_token_id")) c.eos_ids = token_ids(fields, "eos_token_id");
    }
    std::sort(c.eos_ids.begin(), c.eos_ids.end());
    c.eos_ids.erase(std::unique(c.eos_ids.begin(), c.eos_ids.end()), c.eos_ids.end());
}

bool template_begins_with_special(const nlohmann::json& processor) {
    if (!processor.is_object()) return false;
    const std::string type = processor.contains("type") && processor["type"].is_string()
                                 ? processor["type"].get<std::string>()
                                 : std::string();
    if (type == "Sequence" && processor.contains("processors") && processor["processors"].is_array()) {
        const auto& parts = processor["processors"];
        return std::any_of(parts.begin(), parts.end(), template_begins_with_special);
    }
    if (type != "TemplateProcessing" || !processor.contains("single") || !processor["single"].is_array()) return false;
    const auto& single = processor["single"];
    return !single.empty() && single.front().is_object() && single.front().contains("SpecialToken");
}

void read_add_bos(const fs::path& directory, ModelConfig& c) {
    const fs::path tokenizer_config = directory / "tokenizer_config.json";
    if (fs::exists(tokenizer_config)) {
        const auto json = JsonFields::parse_file(tokenizer_config);
        if (const auto add = JsonFields(json, tokenizer_config).boolean("add_bos_token")) {
            c.add_bos = *add;
            return;
        }
    }
    const fs::path tokenizer = directory / "tokenizer.json";
    if (!fs::exists(tokenizer)) return;
    const auto keep = [](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
        const bool is_key = event == nlohmann::json::parse_event_t::key && depth == 1;
        return !is_key || parsed == "post_processor";
    };
    const std::string text = read_text_file(tokenizer);
    const auto json = nlohmann::json::parse(text, keep, false);
    if (json.is_discarded() || !json.is_object()) throw CheckpointError(tokenizer, "is not a JSON object");
    if (json.contains("post_processor")) c.add_bos = template_begins_with_special(json["post_processor"]);
}

}  // namespace

ModelConfig read_hf_config(const fs::path& directory) {
    const fs::path file = directory / "config.json";
    const auto json = JsonFields::parse_file(file);
    const JsonFields config(json, file);
    ModelConfig c;
    c.name = name_of_directory(directory);
    const auto metadata_name = [&] { return utf8_lossy(config.text("_name_or_path").value_or("")); };
    const Family& family = family_of(config, [&] { return c.name + " " + metadata_name(); });
    c.family = family.name;
    refuse_features(config);
    refuse_unsupported_fields(config, family);
    read_sizes(config, family, c);
    read_parts(config, family, c);
    read_rope(config, family.keys.rope_theta.hf, c);
    check_config(c, file);
    read_sliding_window(config, family, c);
    read_end_of_text(config, directory, family.defaults, c);
    read_add_bos(directory, c);
    c.config_json = read_text_file(file, std::numeric_limits<uint32_t>::max());
    c.metadata_name = metadata_name();
    check_config(c, file);
    return c;
}

}  // namespace kvscope::checkpoint
