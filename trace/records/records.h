// The contents of a trace as plain structs, with the names, shapes and units of schema.h. Arrays are row-major. An
// empty vector means that the data set does not exist.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "common/full_policy.h"
#include "common/shared_text.h"
#include "trace/records/kept.h"

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
    std::vector<float> spectrum_q, spectrum_k, spectrum_v;                 ///< shape (L, hidden)
    std::vector<float> head_spectrum_q, head_spectrum_k, head_spectrum_v;  ///< shape (L, H or G, d)
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
    /// Earlier prompt with the same context and query_aware = 0. The two prompts share `full` (except last_logits) and
    /// the runs' scores and kept_*, which may be empty in this record.
    std::optional<int> context_of;
    /// Number of tokens that the chat template puts before the context: the system prompt.
    std::optional<std::int64_t> n_system;
    std::int64_t window = 0;  ///< attribute `window` of `full`: w, or 0 without `full`

    /// Returns N, the length of the token axis of full/*, scores and merged/token_entry.
    [[nodiscard]] std::int64_t visible_tokens() const { return query_aware ? n_tokens : n_context; }
};

struct PromptRecord : PromptAttributes {
    std::vector<std::int32_t> token_ids;                                                     ///< shape (n_tokens)
    std::vector<std::string> token_text;                                                     ///< shape (n_tokens)
    std::vector<float> window_attention;                                                     ///< shape (L, H, N)
    std::vector<float> query_similarity;                                                     ///< shape (L, H, w, w)
    std::vector<float> adjacent_similarity_q, adjacent_similarity_k, adjacent_similarity_v;  ///< shape (L)
    std::vector<float> mode_contribution_q, mode_contribution_k, mode_contribution_v;        ///< shape (L, H or G, d)
    std::vector<float> layer_similarity_k, layer_similarity_v;                               ///< shape (L, L)
    std::vector<float> head_similarity_k, head_similarity_v;                                 ///< shape (L, G, G)
    std::vector<float> gradient_alignment_c11, gradient_alignment_c12, gradient_alignment_c22;  ///< shape (L, H)
    std::vector<float> head_jsd;     ///< shape (L, H, H), nats
    std::vector<float> last_logits;  ///< shape (vocab)
};

struct RunAttributes {
    std::string policy;
    std::string label;
    std::string given_label;       ///< name that the user gave the run, or empty; not stored in the trace
    std::string requested_budget;  ///< "128" or "0.2", from the trace's recipe; empty if the recipe has none
    std::string parameters_json;
    std::int64_t budget = 0;
    double budget_fraction = 0;
    std::optional<std::string> budget_of;  ///< "bytes", or nullopt for entries
    std::int64_t window = 0;
    std::uint64_t seed = 0;
    std::string granularity = "kv_head";  ///< kv_head | query_head
    std::string status = "complete";      ///< complete | failed
    std::string message;
    std::string mode = "shared";  ///< shared | isolated
    double prefill_s = 0;
    double select_s = 0;
    std::string output_text;
    /// Device, instruction set of the kernels (such as avx2) and kvscope commit that computed the run; nullopt if not
    /// recorded.
    std::optional<std::string> device, instructions, commit;
    /// Share of the rows (L·R) in which a kept position has the score of the best dropped position.
    std::optional<double> tied_heads;
    // The next four values are recorded only in isolated mode.
    std::optional<double> first_token_s;
    std::optional<double> decode_s;
    std::optional<double> decode_tokens_per_s;
    std::optional<std::uint64_t> peak_bytes;

    [[nodiscard]] bool is_full() const { return policy == full_policy; }
};

struct RunRecord : RunAttributes {
    std::vector<std::uint64_t> kept_offsets;  ///< shape (L·R + 1)
    std::vector<std::uint32_t> kept_indices;  ///< shape (Σ)
    /// Shape (L, R, N). At most one of the vectors `scores` and `scores_f64` is filled.
    std::vector<float> scores;
    std::vector<double> scores_f64;
    std::vector<float> head_jsd;                   ///< shape (L, R, R), nats
    std::vector<std::int32_t> merged_token_entry;  ///< shape (L, R, N)
    std::vector<float> merged_cardinality;         ///< shape (Σ)
    /// Shape (L): number of keys made by merging, and number of these with a merge weight outside [0, 1].
    std::vector<std::uint64_t> merged_keys, merged_keys_outside;
    std::vector<std::uint8_t> channels_kept;  ///< shape (L, R, d)
    std::vector<float> channel_scores;        ///< shape (L, R, d)
    /// Shape (L, R): number of entries that are not whole keys and values; empty if all entries are whole.
    std::vector<std::uint32_t> stored_entries;
    std::vector<std::uint8_t>
        stored_is_whole;  ///< shape (Σ); empty if the entries that are not whole come first in each row
    std::vector<float> stored_key_width, stored_value_width, stored_key_error, stored_value_error;
    /// Shape (L): predicted bytes, one vector per kind of storage.
    std::vector<std::uint64_t> stored_whole_bytes, stored_channel_bytes, stored_mapped_bytes, stored_mass_bytes;
    std::vector<std::uint32_t> switch_steps;   ///< steps of the answer after which the cache changed its form
    std::vector<std::uint8_t> switch_is_full;  ///< for each switch, 1 if the cache became full
    std::vector<std::int32_t> output_ids;
    std::vector<float> step_kl;                        ///< shape (T), nats
    std::vector<std::uint8_t> step_agreement;          ///< shape (T)
    std::vector<float> attention_kept;                 ///< shape (L, H)
    std::vector<float> output_error;                   ///< shape (L, H)
    std::vector<float> recall;                         ///< shape (L, R); NaN without a best token
    std::vector<std::uint64_t> cache_bytes;            ///< shape (L)
    std::vector<std::uint64_t> cache_bytes_predicted;  ///< shape (L)
    std::vector<std::uint64_t> head_bytes;             ///< shape (L, R)
    std::vector<std::int32_t> lookahead_ids;           ///< only for the policy laq
    std::vector<std::int32_t> pseudo_ids;              ///< only for the policy dapq
    std::vector<float> answer_attention;               ///< shape (L, G, N), only for the policy full
    std::vector<float> kl_attention_lost;              ///< shape (L, N), nats
};

/// One run of a sample or prompt; result_columns.h describes the members. NaN means that the number is not recorded.
struct ResultRow {
    static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

    SharedText sample_id;
    SharedText subset;
    SharedText prompt_hash;
    SharedText policy;
    SharedText parameters_json;
    std::int64_t budget = 0;
    double budget_fraction = 0;
    std::int64_t length = 0;
    double depth = 0;
    SharedText prediction;
    SharedText answers_json;
    SharedText metric;
    SharedText scored_as;
    double score = 0;
    double seconds = 0;
    double kept_share = 0;
    SharedText status = "complete";
    SharedText model;
    SharedText dtype;
    SharedText device;
    SharedText instructions;
    SharedText commit;
    SharedText source;
    SharedText requested_budget;
    SharedText sample_hash;
    SharedText context_hash;
    SharedText data_hash;
    std::uint64_t seed = 0;
    std::int64_t question_seen = -1;
    std::int64_t repeat = 0;
    std::int64_t batch = 1;
    double kl = unknown;
    double kl_stderr = unknown;
    double kl_steps = unknown;
    double agreement = unknown;
    double coverage = unknown;
    double attention_kept = unknown;
    double recall = unknown;
    double output_error = unknown;
    double bytes = unknown;
    double bytes_predicted = unknown;
    double merged_keys = unknown;
    double merged_keys_outside = unknown;
    double prefill_s = unknown;
    double select_s = unknown;
    double first_token_s = unknown;
    double decode_s = unknown;
    double tokens_per_s = unknown;
    double peak_bytes = unknown;
    double evidence_kept = unknown;
    double evidence_gone = unknown;
    double system_dropped = unknown;
    double tied_heads = unknown;
    SharedText cause;
    double cause_layer = unknown;
    double cause_head = unknown;
    double cause_token = unknown;
    double cause_gap = unknown;
};

}  // namespace kvscope::trace
