#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::checkpoint {

/// Extension of rotary positions beyond the training context, as in transformers' `rope_scaling`.
struct RopeScaling {
    enum class Kind { none, linear, llama3, yarn };
    Kind kind = Kind::none;
    double factor = 1.0;
    int64_t original_context = 0;   ///< original_max_position_embeddings (llama3, yarn)
    double low_freq_factor = 1.0;   ///< llama3: divides wavelengths above original_context / low_freq_factor
    double high_freq_factor = 4.0;  ///< llama3: keeps wavelengths below original_context / high_freq_factor
    double beta_fast = 32.0;        ///< yarn: keeps dimensions with more rotations
    double beta_slow = 1.0;         ///< yarn: divides dimensions with fewer rotations by the factor
    bool truncate = true;           ///< yarn: whether ramp borders are rounded to whole dimensions
    double attention_factor = 1.0;  ///< yarn: factor of cos and sin; 1 for other types
};

/// Valid configuration of a transformer of a supported family.
struct ModelConfig {
    std::string family;         ///< name of a file in engine/families
    std::string name;           ///< display name, chosen by model_name.h
    std::string metadata_name;  ///< name in the file: general.name or _name_or_path; may be empty
    int n_layers = 0;
    int n_heads = 0;     ///< H
    int n_kv_heads = 0;  ///< G, divides H
    int head_dim = 0;    ///< d, even; may differ from hidden_size / n_heads
    int hidden_size = 0;
    int intermediate_size = 0;
    int64_t vocab_size = 0;
    int64_t context_length = 0;
    float rms_norm_eps = 0;
    double rope_theta = 10000;
    RopeScaling rope_scaling;
    /// (d/2) divisors of the inverse frequencies (GGUF rope_freqs.weight), or empty.
    std::vector<float> rope_factors;
    bool qkv_bias = false;
    bool output_bias = false;  ///< whether o_proj has a bias
    bool mlp_bias = false;
    bool qk_norm = false;  ///< whether RMS norm is applied to each head before RoPE
    bool tied_embeddings = false;
    /// (n_layers) window w of each layer, or 0 for all keys. A query sees itself and the w - 1 keys before it.
    std::vector<int64_t> sliding_window;
    std::vector<int32_t> eos_ids;  ///< ids that end generation, ascending
    int32_t bos_id = -1;           ///< -1 if the model has none
    bool add_bos = false;
    /// Configuration for the trace: config.json unchanged, or a GGUF file's metadata in the same format.
    std::string config_json;

    /// Returns the angle per position (d/2) of each rotary pair (i, i + d/2), with scaling.
    std::vector<float> inverse_frequencies() const;

    [[nodiscard]] float rope_attention_factor() const { return static_cast<float>(rope_scaling.attention_factor); }
};

}  // namespace kvscope::checkpoint
