// The trace's contents as plain structs. Field names are the trace's names; shapes and units stand
// in schema.h. Arrays are row-major; an empty vector stands for a data set that is not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/kept.h"

namespace kvscope::trace {

struct ModelAttributes {
    std::string name;
    std::string family;
    std::string fingerprint;  ///< SHA-256, 64 hexadecimal digits
    std::string dtype;        ///< f32 | bf16 | f16
    std::int64_t n_layers = 0;
    std::int64_t n_heads = 0;
    std::int64_t n_kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t hidden_size = 0;
    std::int64_t vocab_size = 0;
    double rope_theta = 0;
    std::string config_json;
};

struct ModelRecord : ModelAttributes {
    std::vector<float> spectrum_q, spectrum_k, spectrum_v;                 ///< (L, hidden)
    std::vector<float> head_spectrum_q, head_spectrum_k, head_spectrum_v;  ///< (L, H | G | G, d)
};

struct PromptAttributes {
    std::string name;
    std::string text;
    std::string question;
    std::string chat_template;  ///< the attribute `template`
    std::int64_t n_tokens = 0;
    std::int64_t n_context = 0;
    bool query_aware = true;
    std::vector<std::int32_t> eos_ids;
    bool truncated = false;
    /// Earlier prompt with the same context and query_aware = 0. The writer then takes `full` (but
    /// last_logits) and its runs' scores and kept_* from that prompt: they may be left empty here.
    std::optional<int> context_of;
    std::int64_t window = 0;  ///< w of `full`, its attribute `window`; 0 where there is no `full`

    /// N of full/*, scores and merged/token_entry.
    [[nodiscard]] std::int64_t visible_tokens() const { return query_aware ? n_tokens : n_context; }
};

struct PromptRecord : PromptAttributes {
    std::vector<std::int32_t> token_ids;                                                        ///< (n_tokens)
    std::vector<std::string> token_text;                                                        ///< (n_tokens)
    std::vector<float> window_attention;                                                        ///< (L, H, N)
    std::vector<float> query_similarity;                                                        ///< (L, H, w, w)
    std::vector<float> adjacent_similarity_q, adjacent_similarity_k, adjacent_similarity_v;     ///< (L)
    std::vector<float> mode_contribution_q, mode_contribution_k, mode_contribution_v;           ///< (L, H | G | G, d)
    std::vector<float> layer_similarity_k, layer_similarity_v;                                  ///< (L, L)
    std::vector<float> head_similarity_k, head_similarity_v;                                    ///< (L, G, G)
    std::vector<float> gradient_alignment_c11, gradient_alignment_c12, gradient_alignment_c22;  ///< (L, H)
    std::vector<float> head_jsd;                                                                ///< (L, H, H), nats
    std::vector<float> last_logits;                                                             ///< (vocab)
};

struct RunAttributes {
    std::string policy;
    std::string label;
    std::string given_label;  ///< in no file: what a person calls it (Reader::with_labels); empty: nothing
    std::string parameters_json;
    std::int64_t budget = 0;
    double budget_fraction = 0;
    std::optional<std::string> budget_of;  ///< "bytes"; nothing: entries
    std::int64_t window = 0;
    std::uint64_t seed = 0;
    std::string granularity = "kv_head";  ///< kv_head | query_head
    std::string status = "complete";      ///< complete | failed
    std::string message;
    std::string mode = "shared";  ///< shared | isolated
    double prefill_s = 0;
    double select_s = 0;
    std::string output_text;
    // isolated mode only
    std::optional<double> first_token_s;
    std::optional<double> decode_s;
    std::optional<double> decode_tokens_per_s;
    std::optional<std::uint64_t> peak_bytes;
};

struct RunRecord : RunAttributes {
    std::vector<std::uint64_t> kept_offsets;  ///< (L·R + 1)
    std::vector<std::uint32_t> kept_indices;  ///< (Σ)
    /// (L, R, N): at most one of the two is filled and stored as `scores`.
    std::vector<float> scores;
    std::vector<double> scores_f64;
    std::vector<float> head_jsd;                   ///< (L, R, R), nats
    std::vector<std::int32_t> merged_token_entry;  ///< (L, R, N)
    std::vector<float> merged_cardinality;         ///< (Σ)
    /// (L) keys that merging made while the prompt was read, and those of them that are not between their two.
    std::vector<std::uint64_t> merged_keys, merged_keys_outside;
    std::vector<std::uint8_t> channels_kept;  ///< (L, R, d)
    std::vector<float> channel_scores;        ///< (L, R, d)
    /// (L, R) where entries are stored otherwise than as whole keys and values.
    std::vector<std::uint32_t> stored_entries;
    std::vector<std::uint8_t> stored_is_whole;  ///< (Σ) empty where those that are not come first in each row
    std::vector<float> stored_key_width, stored_value_width, stored_key_error, stored_value_error;
    /// (L)
    std::vector<std::uint64_t> stored_whole_bytes, stored_channel_bytes, stored_mapped_bytes, stored_mass_bytes;
    std::vector<std::uint32_t> switch_steps;           ///< steps of the answer behind which the cache changed its form
    std::vector<std::uint8_t> switch_is_full;          ///< of each of them, whether it became full
    std::vector<std::int32_t> output_ids;              ///< own length
    std::vector<float> step_kl;                        ///< (T), nats
    std::vector<std::uint8_t> step_agreement;          ///< (T)
    std::vector<float> attention_kept;                 ///< (L, H)
    std::vector<float> output_error;                   ///< (L, H)
    std::vector<std::uint64_t> cache_bytes;            ///< (L)
    std::vector<std::uint64_t> cache_bytes_predicted;  ///< (L)
    std::vector<std::uint64_t> head_bytes;             ///< (L, R)
    std::vector<std::int32_t> lookahead_ids;           ///< laq
    std::vector<std::int32_t> pseudo_ids;              ///< dapq
    std::vector<float> answer_attention;               ///< (L, G, N), full
    std::vector<float> kl_attention_lost;              ///< (L, N), nats
};

/// One row of /results/<task>.
struct ResultRow {
    std::string sample_id;
    std::string prompt_hash;
    std::string policy;
    std::string parameters_json;
    std::int64_t budget = 0;
    double budget_fraction = 0;
    std::int64_t length = 0;
    double depth = 0;  ///< NaN where the task has no needle
    std::string prediction;
    std::string answers_json;
    std::string metric;
    std::string scored_as;
    double score = 0;
    double seconds = 0;
    double kept_share = 0;
    std::string status = "complete";
};

}  // namespace kvscope::trace
