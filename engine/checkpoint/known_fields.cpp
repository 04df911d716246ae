#include "engine/checkpoint/known_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/lower_case.h"
#include "common/words.h"
#include "engine/families/registry/registry.h"
#include "engine/files/file_reader.h"
#include "engine/files/json_text.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Names = std::set<std::string, std::less<>>;

/// Fields that are read for all families, then fields that only affect training, other tasks, execution or sampling in
/// transformers. Families declare further fields.
const Names config_known = words(R"(
    architectures bos_token_id eos_token_id hidden_act model_type original_max_position_embeddings
    partial_rotary_factor quantization_config rope_parameters rope_scaling tie_word_embeddings num_local_experts
    num_experts n_routed_experts vision_config text_config audio_config _name_or_path

    attention_dropout initializer_range use_cache torch_dtype dtype transformers_version pad_token_id pretraining_tp
    attn_implementation _attn_implementation _attn_implementation_autoset _flash_attn_2_enabled auto_map
    hidden_dropout hidden_dropout_prob embd_pdrop resid_pdrop attn_pdrop embedding_dropout residual_dropout
    classifier_dropout transformers.js_config is_llama_config unsloth_version unsloth_fixed model_name mlx_version
    is_decoder chunk_size_feed_forward cross_attention_hidden_size decoder_start_token_id sep_token_id
    finetuning_task id2label label2id num_labels problem_type prefix task_specific_params tokenizer_class
    torchscript use_bfloat16 tf_legacy_loss return_dict return_dict_in_generate output_attentions
    output_hidden_states output_scores name_or_path max_sequence_length model_max_length max_length min_length
    do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k top_p typical_p
    repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids
    num_return_sequences forced_bos_token_id forced_eos_token_id remove_invalid_values
    exponential_decay_length_penalty suppress_tokens begin_suppress_tokens gradient_checkpointing use_reentrant
    rope_scaling_type)");

const Names rope_known = words(R"(
    rope_type type rope_theta factor beta_fast beta_slow truncate original_max_position_embeddings low_freq_factor
    mscale mscale_all_dim high_freq_factor attention_factor partial_rotary_factor max_position_embeddings finetuned)");

bool is_off(const json& value) {
    return value.is_null() || (value.is_structured() && value.empty()) ||
           (value.is_string() && value.get_ref<const std::string&>().empty()) || value == false || value == 0;
}

bool are_ones(const json& value) {
    return value.is_array() && std::all_of(value.begin(), value.end(), [](const json& item) { return item == 1; });
}

/// Fields that change results unless their values are neutral.
struct Refused {
    const char* neutral;
    bool (*is_neutral)(const json&);
    Names names;
};

const Refused refused_in_config[] = {
    {"false or 0", is_off, words(R"(
    attn_logit_softcapping final_logit_softcapping attn_logit_softcap final_logit_softcap logits_soft_cap
    attention_multiplier query_pre_attn_scalar attn_scale attn_temperature_tuning floor_scale llama_4_scaling_beta
    clip_qkv alibi use_alibi parallel_attn use_parallel_residual rope_interleaved no_rope_layer_interval use_mrope
    attention_chunk_size sliding_window_pattern interleaved_sliding_window num_kv_shared_layers transformers_weights
    use_bidirectional_attention add_cross_attention cross_attention_layers is_encoder_decoder tie_encoder_decoder
    pruned_heads compression_config block_configs use_qk_l2_norm scale_embedding scale_embeddings
    normalize_embedding dim_model_base scale_depth)")},
    {"1", [](const json& value) { return value == 1; }, words(R"(
    logit_scale logits_scaling output_multiplier lm_head_multiplier embedding_multiplier residual_multiplier
    scale_emb rotary_pct attention_in_multiplier attention_out_multiplier key_multiplier)")},
    {"1 for each layer", are_ones, words("no_rope_layers")},
    {"true", [](const json& value) { return value == true; }, words("is_causal")},
};
const Refused refused_in_rope = {"0", is_off, words(R"(
    llama_4_scaling_beta mrope_section mrope_interleaved short_factor long_factor short_mscale long_mscale alpha)")};

void refuse(const JsonFields& fields, const Refused& refused, const Names& read, const std::string& where = "") {
    for (const std::string& name : refused.names) {
        const json* value = fields.find(name.c_str());
        if (value == nullptr || read.contains(name) || refused.is_neutral(*value)) continue;
        fields.fail(fmt::format("{}{} is {}, which kvscope does not support; expected {} or a missing field. {}", where,
                                name, JsonFields::shown(*value), refused.neutral, supported_models()));
    }
}

const Names tokenizer_known = words(R"(
    version truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model)");
const Names tokenizer_model_known = words(R"(
    type dropout unk_token continuing_subword_prefix fuse_unk byte_fallback ignore_merges end_of_word_suffix vocab
    merges)");
const Names added_token_known = words("id content special single_word lstrip rstrip normalized __type");

const Names stage_known = words(R"(
    type normalizers pretokenizers processors decoders pattern String Regex content behavior invert prepend
    replacement split str_rep strip_left individual_digits start strip_right stop single trim_offsets
    add_prefix_space pair use_regex SpecialToken Sequence id prepend_scheme type_id special_tokens)");

/// Names that end in _token are known, too. If tokenizer.json exists, transformers 5 ignores the first three fields.
const Names tokenizer_config_known = words(R"(
    add_bos_token add_eos_token add_prefix_space added_tokens_decoder additional_special_tokens extra_special_tokens
    model_specific_special_tokens split_special_tokens chat_template auto_map backend clean_up_tokenization_spaces
    device_map errors fast_tokenizer from_slow image_token is_local legacy local_files_only max_length
    model_input_names model_max_length name_or_path pad_to_multiple_of pad_token_type_id padding padding_side
    processor_class sp_model_kwargs spaces_between_special_tokens special_tokens_map_file stride tokenizer_class
    tokenizer_file truncation truncation_side truncation_strategy trust_remote_code use_default_system_prompt
    use_fast vocab_file merges_file unk_id verbose init_inputs response_schema tokenizer_type _commit_hash
    transformers_version padding_strategy truncate max_len)");

const Names gguf_known = words(R"(
    expert_count attention.value_length rope.dimension_count rope.scale_linear rope.scaling.type rope.scaling.factor
    rope.scaling.attn_factor rope.scaling.original_context_length rope.scaling.yarn_log_multiplier
    rope.scaling.yarn_ext_factor rope.scaling.yarn_attn_factor rope.scaling.yarn_beta_fast
    rope.scaling.yarn_beta_slow
    expert_used_count rope.scaling.finetuned tensor_data_layout pooling_type attention.layer_norm_epsilon)");
const Names gguf_off = words(R"(
    leading_dense_block_count use_parallel_residual attn_logit_softcapping final_logit_softcapping swin_norm
    rescale_every_n_layers attention.max_alibi_bias attention.clamp_kqv attention.scale attention.temperature_length
    attention.temperature_scale attention.shared_kv_layers attention.rope_pattern attention.q_lora_rank
    attention.kv_lora_rank attention.key_length_swa attention.value_length_swa attention.key_length_mla
    attention.value_length_mla rope.dimension_sections rope.dimension_count_swa rope.freq_base_swa
    rope.scaling.alpha full_attention_interval interleave_moe_layer_step nextn_predict_layers n_deepstack_layers
    num_loops swiglu_clamp_exp swiglu_clamp_shexp hidden_activation embedding_length_per_layer_input)");
const Names gguf_one = words(R"(
    logit_scale residual_scale embedding_scale attention.output_scale attention.value_scale attention.causal)");

/// Keys that llama.cpp's tokenizer reads, and keys that describe the file.
const Names gguf_global_known = words(R"(
    tokenizer.ggml.model tokenizer.ggml.pre tokenizer.ggml.tokens tokenizer.ggml.token_type
    tokenizer.ggml.token_type_count tokenizer.ggml.scores tokenizer.ggml.merges tokenizer.ggml.bos_token_id
    tokenizer.ggml.eos_token_id tokenizer.ggml.eot_token_id tokenizer.ggml.eom_token_id
    tokenizer.ggml.unknown_token_id tokenizer.ggml.seperator_token_id tokenizer.ggml.padding_token_id
    tokenizer.ggml.cls_token_id tokenizer.ggml.mask_token_id tokenizer.ggml.add_bos_token
    tokenizer.ggml.add_eos_token tokenizer.ggml.add_sep_token tokenizer.ggml.add_space_prefix
    tokenizer.ggml.remove_extra_whitespaces tokenizer.ggml.precompiled_charsmap tokenizer.ggml.fim_pre_token_id
    tokenizer.ggml.fim_suf_token_id tokenizer.ggml.fim_mid_token_id tokenizer.ggml.fim_pad_token_id
    tokenizer.ggml.fim_rep_token_id tokenizer.ggml.fim_sep_token_id tokenizer.ggml.prefix_token_id
    tokenizer.ggml.suffix_token_id tokenizer.ggml.middle_token_id tokenizer.huggingface.json tokenizer.chat_template
    tokenizer.chat_templates split.no split.count split.tensors.count)");
const Names gguf_global_off = words("tokenizer.ggml.suppress_tokens");
constexpr std::string_view gguf_known_prefixes[] = {"general.", "quantize.", "tokenizer.chat_template."};

double number_in(const GgufValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) {
        const std::string lower = lower_case(*text);
        return lower.empty() || lower == "silu" || lower == "swish" ? 0 : -1;
    }
    if (const auto* list = std::get_if<GgufArray>(&value)) {
        const bool is_off = list->numbers.size() == list->size &&
                            std::all_of(list->numbers.begin(), list->numbers.end(), [](double n) { return n == 0; });
        return is_off ? 0 : -1;
    }
    return std::visit(
        [](const auto& number) {
            if constexpr (std::is_arithmetic_v<std::decay_t<decltype(number)>>) return static_cast<double>(number);
            return -1.0;
        },
        value);
}

std::string shown(const GgufValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) return fmt::format("\"{:.60}\"", *text);
    if (const auto* list = std::get_if<GgufArray>(&value)) return fmt::format("a list of {}", list->size);
    return fmt::format("{:g}", number_in(value));
}

void add_unknown(const JsonFields& fields, std::initializer_list<const Names*> known, UnknownFields& out) {
    for (const std::string& name : fields.names()) {
        const std::string_view own = std::string_view(name).substr(name.rfind('.') + 1);
        const bool is_known = std::any_of(known.begin(), known.end(), [&](const Names* names) {
            return names->contains(own) || names->contains(name);
        });
        if (!is_known) out.names.push_back(name);
    }
}

Names of_any_family(Names (Family::*of)() const) {
    Names all;
    for (const Family& family : families()) all.merge((family.*of)());
    return all;
}

UnknownFields unknown_in_config(const fs::path& file) {
    UnknownFields out{file, {}};
    const json whole = JsonFields::parse_file(file);
    const JsonFields config(whole, file);
    Names known = of_any_family(&Family::hf_fields);
    for (const Refused& refused : refused_in_config) known.insert(refused.names.begin(), refused.names.end());
    add_unknown(config, {&known, &config_known}, out);
    for (const char* name : {"rope_parameters", "rope_scaling"})
        if (const auto rope = config.object(name)) add_unknown(*rope, {&rope_known, &refused_in_rope.names}, out);
    return out;
}

void add_unknown_in_stage(const json& stage, const std::string& where, UnknownFields& out) {
    for (const auto& [name, value] : stage.items()) {
        const std::string place = stage.is_array() ? fmt::format("{}[{}]", where, name) : where + "." + name;
        if (stage.is_object() && !stage_known.contains(name)) {
            out.names.push_back(place);
        } else if (value.is_structured() && name != "special_tokens") {  // special_tokens has token names as fields
            add_unknown_in_stage(value, place, out);
        }
    }
}

UnknownFields unknown_in_tokenizer(const fs::path& file) {
    UnknownFields out{file, {}};
    const json whole = read_json_object(file);
    const JsonFields tokenizer(whole, file);
    add_unknown(tokenizer, {&tokenizer_known}, out);
    if (const auto model = tokenizer.object("model")) add_unknown(*model, {&tokenizer_model_known}, out);
    for (const char* name : {"normalizer", "pre_tokenizer", "post_processor", "decoder"})
        if (const json* stage = tokenizer.find(name); stage != nullptr && stage->is_structured())
            add_unknown_in_stage(*stage, name, out);
    const json* added = tokenizer.find("added_tokens");
    Names of_tokens;  // each name is added once for all tokens
    for (size_t i = 0; added != nullptr && added->is_array() && i < added->size(); ++i) {
        if (!(*added)[i].is_object()) continue;
        for (const auto& [name, value] : (*added)[i].items())
            if (!added_token_known.contains(name)) of_tokens.insert("added_tokens[]." + name);
    }
    out.names.insert(out.names.end(), of_tokens.begin(), of_tokens.end());
    return out;
}

bool names_tokens(std::string_view name) { return name.ends_with("_token") || name.ends_with("_special_tokens"); }

UnknownFields unknown_in_tokenizer_config(const fs::path& file) {
    UnknownFields out{file, {}};
    const json whole = JsonFields::parse_file(file);
    add_unknown(JsonFields(whole, file), {&tokenizer_config_known}, out);
    std::erase_if(out.names, names_tokens);
    return out;
}

UnknownFields unknown_in_gguf(const fs::path& path) {
    UnknownFields out{path, {}};
    const GgufFile file(path);
    const std::string prefix = file.text("general.architecture").value_or("") + ".";
    const Names of_families = of_any_family(&Family::gguf_keys);
    for (const auto& field : file.values()) {
        const std::string& key = field.first;
        const bool has_prefix = std::any_of(std::begin(gguf_known_prefixes), std::end(gguf_known_prefixes),
                                            [&](std::string_view known) { return key.starts_with(known); });
        if (has_prefix || gguf_global_known.contains(key) || gguf_global_off.contains(key)) continue;
        const std::string own = key.starts_with(prefix) ? key.substr(prefix.size()) : key;
        const bool is_known =
            of_families.contains(own) || gguf_known.contains(own) || gguf_off.contains(own) || gguf_one.contains(own);
        if (!is_known || !key.starts_with(prefix)) out.names.push_back(key);
    }
    return out;
}

}  // namespace

void refuse_unsupported_fields(const JsonFields& config, const Family& family) {
    const Names read = family.hf_fields();
    for (const Refused& refused : refused_in_config) refuse(config, refused, read);
    for (const char* name : {"rope_parameters", "rope_scaling"})
        if (const auto rope = config.object(name)) refuse(*rope, refused_in_rope, {}, std::string(name) + ".");
}

void refuse_unsupported_keys(const GgufFile& file, const Family& family) {
    const Names read = family.gguf_keys();
    const auto refuse = [&](const Names& names, const std::string& prefix, bool may_be_one, const char* neutral) {
        for (const std::string& name : names) {
            const auto found = file.values().find(prefix + name);
            if (found == file.values().end() || read.contains(name)) continue;
            const double number = number_in(found->second);
            // For llama.cpp, a factor of 0 means no factor.
            if ((number == 0 && name != "attention.causal") || (may_be_one && number == 1)) continue;
            file.fail(fmt::format("{}{} is {}, which kvscope does not support; expected {} or a missing key. {}",
                                  prefix, name, shown(found->second), neutral, supported_models()));
        }
    };
    const std::string prefix = family.gguf_architecture + ".";
    refuse(gguf_off, prefix, false, "0");
    refuse(gguf_one, prefix, true, "1");
    refuse(gguf_global_off, "", false, "an empty list");
}

std::vector<UnknownFields> unknown_fields(const fs::path& model) {
    std::error_code error;
    const bool is_file_in_directory = model.extension() == ".safetensors" || model.filename() == "tokenizer.json";
    std::vector<UnknownFields> all;
    if (!fs::is_directory(model, error) && !is_file_in_directory) {
        all.push_back(unknown_in_gguf(model));
    } else {
        const fs::path directory = is_file_in_directory ? model.parent_path() : model;
        const auto read = [&](const char* name, UnknownFields (*of)(const fs::path&)) {
            if (fs::exists(directory / name, error)) all.push_back(of(directory / name));
        };
        read("config.json", unknown_in_config);
        read("tokenizer.json", unknown_in_tokenizer);
        read("tokenizer_config.json", unknown_in_tokenizer_config);
        read("special_tokens_map.json", unknown_in_tokenizer_config);
        read("chat_template.json", unknown_in_tokenizer_config);
    }
    std::erase_if(all, [](const UnknownFields& fields) { return fields.names.empty(); });
    return all;
}

}  // namespace kvscope::checkpoint
