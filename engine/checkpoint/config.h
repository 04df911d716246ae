#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::checkpoint {

/// How rotary positions are stretched beyond the context a model was first trained on; names and meaning as in
/// transformers' `rope_scaling` / `rope_parameters`.
struct RopeScaling {
    enum class Kind { none, linear, llama3, yarn };
    Kind kind = Kind::none;
    double factor = 1.0;
    int64_t original_context = 0;   ///< original_max_position_embeddings (llama3, yarn)
    double low_freq_factor = 1.0;   ///< llama3
    double high_freq_factor = 4.0;  ///< llama3
    double beta_fast = 32.0;        ///< yarn
    double beta_slow = 1.0;         ///< yarn
    bool truncate = true;           ///< yarn: ramp borders rounded to whole dimensions
    double attention_factor = 1.0;  ///< yarn: what cos and sin are multiplied by (resolved; 1 for the others)
};

/// What a transformer of the supported families is made of. Every field is validated when a checkpoint is opened.
struct ModelConfig {
    std::string family;         ///< llama, mistral, qwen2, qwen3 or smollm2
    std::string name;           ///< for people; model_name.h says which of its names
    std::string metadata_name;  ///< what the file calls itself: general.name, _name_or_path; empty: nothing
    int n_layers = 0;
    int n_heads = 0;     ///< H
    int n_kv_heads = 0;  ///< G, divides H
    int head_dim = 0;    ///< d, even; not always hidden_size / n_heads
    int hidden_size = 0;
    int intermediate_size = 0;
    int64_t vocab_size = 0;
    int64_t context_length = 0;
    float rms_norm_eps = 0;
    double rope_theta = 10000;
    RopeScaling rope_scaling;
    std::vector<float>
        rope_factors;  ///< (d/2) or empty; inverse frequencies are divided by them (GGUF rope_freqs.weight)
    bool qkv_bias = false;
    bool output_bias = false;  ///< of o_proj
    bool mlp_bias = false;
    bool qk_norm = false;  ///< RMS norm over each head's d before the rotation
    bool tied_embeddings = false;
    std::vector<int64_t> sliding_window;  ///< (n_layers): a query sees itself and the w - 1 keys before it; 0 = all
    std::vector<int32_t> eos_ids;         ///< ascending; generation ends at any of them
    int32_t bos_id = -1;                  ///< -1 = none
    bool add_bos = false;
    std::string
        config_json;  ///< as it goes into a trace: config.json verbatim, or a GGUF's metadata in the same spelling

    /// (d/2) angle per position of each rotary pair (i, i + d/2), scaling applied.
    std::vector<float> inverse_frequencies() const;

    /// What cos and sin are multiplied by; 1 except for yarn.
    float rope_attention_factor() const { return static_cast<float>(rope_scaling.attention_factor); }
};

}  // namespace kvscope::checkpoint
