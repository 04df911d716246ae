// Names, shapes, types and units of trace format 1.2. A test compares docs/trace-format.md with this file.
#pragma once

#include <array>
#include <string_view>

namespace kvscope::trace::schema {

inline constexpr std::string_view format = "kvscope-trace";
inline constexpr std::string_view version = "1.2";
/// Readers refuse a higher major version. They read any minor version and ignore unknown names.
inline constexpr int version_major = 1;

/// Element type. `text` is UTF-8. `f32_or_u16` is f32, or u16 in files of version 1.0.
enum class Type { i32, u8, u16, u32, u64, f32, f64, f32_or_f64, f32_or_u16, text };

/// Meaning of an axis of a data set. `visible_tokens` is n_context if query_aware = 0, else n_tokens.
enum class Dim {
    layers,          ///< L, layers of the model
    heads,           ///< H, query heads
    kv_heads,        ///< G, KV heads
    rows,            ///< R: G or H, by the run's granularity
    head_dim,        ///< d, size of a head
    hidden,          ///< hidden_size of the model
    vocab,           ///< vocab_size of the model
    visible_tokens,  ///< N, prompt tokens that the policies see
    prompt_tokens,   ///< n_tokens, always with the question
    window,          ///< w, the attribute `window` of `full`
    steps,           ///< T, decode steps of the prompt's full run
    row_offsets,     ///< L·R + 1, offsets of all rows
    entries,         ///< Σ, all entries of a run: the last number of kept_offsets
    any,             ///< length that no other data set shares
};

enum class Need {
    always,    ///< a trace without it is invalid
    measured,  ///< kvscope's engine always writes it; an imported run may lack it
    sometimes  ///< present only if the policy, the mode or the command produces it
};

struct DataSet {
    std::string_view path;  ///< relative to its group, e.g. "full/window_attention"
    Type type;
    int rank;
    std::array<Dim, 4> dims;  ///< only the first `rank` are used
    Need need;
    std::string_view meaning;  ///< one line, with the unit
};

enum class AttributeType { text, integer, real, integers, flag };

struct Attribute {
    std::string_view name;
    AttributeType type;
    Need need;
    std::string_view meaning;
};

[[nodiscard]] constexpr DataSet describe_data_set(std::string_view path, Type type, Dim a, Need need,
                                                  std::string_view meaning) {
    return {path, type, 1, {a, Dim::any, Dim::any, Dim::any}, need, meaning};
}
[[nodiscard]] constexpr DataSet describe_data_set(std::string_view path, Type type, Dim a, Dim b, Need need,
                                                  std::string_view meaning) {
    return {path, type, 2, {a, b, Dim::any, Dim::any}, need, meaning};
}
[[nodiscard]] constexpr DataSet describe_data_set(std::string_view path, Type type, Dim a, Dim b, Dim c, Need need,
                                                  std::string_view meaning) {
    return {path, type, 3, {a, b, c, Dim::any}, need, meaning};
}
[[nodiscard]] constexpr DataSet describe_data_set(std::string_view path, Type type, Dim a, Dim b, Dim c, Dim d,
                                                  Need need, std::string_view meaning) {
    return {path, type, 4, {a, b, c, d}, need, meaning};
}

namespace root {
inline constexpr std::string_view prompts_group = "prompts";
inline constexpr std::string_view runs_group = "runs";
/// Table of /results with the runs of the trace's prompts. All other tables belong to benchmark tasks.
inline constexpr std::string_view prompt_results = "prompts";
inline constexpr std::string_view full_group = "full";
/// Key of a recipe whose trace contains the model's spectra and no prompts.
inline constexpr const char* recipe_spectra = "spectra";

inline constexpr Attribute attributes[] = {
    {"format", AttributeType::text, Need::always, "kvscope-trace"},
    {"version", AttributeType::text, Need::always, "major.minor"},
    {"generator", AttributeType::text, Need::always, "program and version that wrote the file"},
    {"created_utc", AttributeType::text, Need::always, "ISO 8601, e.g. 2025-01-31T12:00:00Z"},
    {"complete", AttributeType::flag, Need::always, "1 once every prompt and run is in the file"},
    {"recipe_json", AttributeType::text, Need::sometimes, "contents of the complete trace; equal recipes resume"},
};
}  // namespace root

namespace model {
inline constexpr Attribute attributes[] = {
    {"name", AttributeType::text, Need::always, "the model's name"},
    {"family", AttributeType::text, Need::always, "e.g. llama, mistral, qwen2, qwen3"},
    {"fingerprint", AttributeType::text, Need::always, "SHA-256 in hexadecimal; changes whenever a weight does"},
    {"dtype", AttributeType::text, Need::always, "f32, bf16 or f16: number type of the engine's computation"},
    {"n_layers", AttributeType::integer, Need::always, "L"},
    {"n_heads", AttributeType::integer, Need::always, "H, query heads"},
    {"n_kv_heads", AttributeType::integer, Need::always, "G, key-value heads"},
    {"head_dim", AttributeType::integer, Need::always, "d"},
    {"hidden_size", AttributeType::integer, Need::always, "width of the residual stream"},
    {"vocab_size", AttributeType::integer, Need::always, "number of logits"},
    {"rope_theta", AttributeType::real, Need::always, "base of the rotary angles"},
    {"config_json", AttributeType::text, Need::always, "the model's configuration, as JSON"},
};

inline constexpr DataSet spectrum_q =
    describe_data_set("spectrum/q", Type::f32, Dim::layers, Dim::hidden, Need::sometimes,
                      "eigenvalues of WᵀW for the query projection W, descending");
inline constexpr DataSet spectrum_k = describe_data_set("spectrum/k", Type::f32, Dim::layers, Dim::hidden,
                                                        Need::sometimes, "the same for the key projection");
inline constexpr DataSet spectrum_v = describe_data_set("spectrum/v", Type::f32, Dim::layers, Dim::hidden,
                                                        Need::sometimes, "the same for the value projection");
inline constexpr DataSet head_spectrum_q =
    describe_data_set("head_spectrum/q", Type::f32, Dim::layers, Dim::heads, Dim::head_dim, Need::sometimes,
                      "eigenvalues of WᵀW for each query head's part of W, descending");
inline constexpr DataSet head_spectrum_k =
    describe_data_set("head_spectrum/k", Type::f32, Dim::layers, Dim::kv_heads, Dim::head_dim, Need::sometimes,
                      "the same for each key head");
inline constexpr DataSet head_spectrum_v =
    describe_data_set("head_spectrum/v", Type::f32, Dim::layers, Dim::kv_heads, Dim::head_dim, Need::sometimes,
                      "the same for each value head");

inline constexpr const DataSet* data_sets[] = {&spectrum_q,      &spectrum_k,      &spectrum_v,
                                               &head_spectrum_q, &head_spectrum_k, &head_spectrum_v};
}  // namespace model

namespace prompt {
inline constexpr Attribute attributes[] = {
    {"name", AttributeType::text, Need::always, "a short name for display"},
    {"text", AttributeType::text, Need::always, "exact text sent to the model, template included"},
    {"question", AttributeType::text, Need::always, "the question at the prompt's end; empty if there is none"},
    {"template", AttributeType::text, Need::always, "the chat template in Jinja; empty if none was applied"},
    {"n_tokens", AttributeType::integer, Need::always, "tokens of the whole prompt"},
    {"n_context", AttributeType::integer, Need::always, "tokens before the question; n_tokens without a question"},
    {"query_aware", AttributeType::flag, Need::always, "1 if policies saw the question or there is none"},
    {"eos_ids", AttributeType::integers, Need::always, "token ids that end a text"},
    {"truncated", AttributeType::flag, Need::always, "1 if the prompt was shortened to the model's limit"},
    {"context_of", AttributeType::integer, Need::sometimes,
     "prompt with the same context; full (except last_logits), scores and kept_* are hard links to its data"},
    {"n_system", AttributeType::integer, Need::sometimes,
     "tokens that the chat template puts before the context: the system prompt"},
};

inline constexpr DataSet token_ids =
    describe_data_set("token_ids", Type::i32, Dim::prompt_tokens, Need::always, "the prompt's token ids");
inline constexpr DataSet token_text =
    describe_data_set("token_text", Type::text, Dim::prompt_tokens, Need::always, "text of each token for display");

inline constexpr std::string_view window_attribute = "window";  ///< attribute of the group `full`
inline constexpr DataSet window_attention =
    describe_data_set("full/window_attention", Type::f32, Dim::layers, Dim::heads, Dim::visible_tokens, Need::measured,
                      "softmax over all visible keys, mean over the window's queries");
inline constexpr DataSet query_similarity =
    describe_data_set("full/query_similarity", Type::f32, Dim::layers, Dim::heads, Dim::window, Dim::window,
                      Need::measured, "cosine of each pair of window queries");
inline constexpr DataSet adjacent_similarity_q =
    describe_data_set("full/adjacent_similarity/q", Type::f32, Dim::layers, Need::measured,
                      "mean cosine of adjacent tokens' queries, before RoPE");
inline constexpr DataSet adjacent_similarity_k =
    describe_data_set("full/adjacent_similarity/k", Type::f32, Dim::layers, Need::measured, "the same for keys");
inline constexpr DataSet adjacent_similarity_v =
    describe_data_set("full/adjacent_similarity/v", Type::f32, Dim::layers, Need::measured, "the same for values");
inline constexpr DataSet mode_contribution_q = describe_data_set(
    "full/mode_contribution/q", Type::f32, Dim::layers, Dim::heads, Dim::head_dim, Need::sometimes,
    "contribution of each mode of a query head's projection to adjacent_similarity, by descending eigenvalue");
inline constexpr DataSet mode_contribution_k =
    describe_data_set("full/mode_contribution/k", Type::f32, Dim::layers, Dim::kv_heads, Dim::head_dim, Need::sometimes,
                      "the same for each key head");
inline constexpr DataSet mode_contribution_v =
    describe_data_set("full/mode_contribution/v", Type::f32, Dim::layers, Dim::kv_heads, Dim::head_dim, Need::sometimes,
                      "the same for each value head");
inline constexpr DataSet layer_similarity_k =
    describe_data_set("full/layer_similarity/k", Type::f32, Dim::layers, Dim::layers, Need::sometimes,
                      "mean cosine of a token's keys in two layers, same KV head, before RoPE");
inline constexpr DataSet layer_similarity_v = describe_data_set("full/layer_similarity/v", Type::f32, Dim::layers,
                                                                Dim::layers, Need::sometimes, "the same for values");
inline constexpr DataSet head_similarity_k =
    describe_data_set("full/head_similarity/k", Type::f32, Dim::layers, Dim::kv_heads, Dim::kv_heads, Need::sometimes,
                      "mean cosine of a token's keys in two KV heads of a layer, before RoPE");
inline constexpr DataSet head_similarity_v =
    describe_data_set("full/head_similarity/v", Type::f32, Dim::layers, Dim::kv_heads, Dim::kv_heads, Need::sometimes,
                      "the same for values");
inline constexpr DataSet gradient_alignment_c11 =
    describe_data_set("full/gradient_alignment/c11", Type::f32, Dim::layers, Dim::heads, Need::sometimes,
                      "mean cosine of c11 (KVSlimmer) with the gradient of the next-token loss at the head's output");
inline constexpr DataSet gradient_alignment_c12 = describe_data_set(
    "full/gradient_alignment/c12", Type::f32, Dim::layers, Dim::heads, Need::sometimes, "the same for c12");
inline constexpr DataSet gradient_alignment_c22 = describe_data_set(
    "full/gradient_alignment/c22", Type::f32, Dim::layers, Dim::heads, Need::sometimes, "the same for c22");
inline constexpr DataSet head_jsd =
    describe_data_set("full/head_jsd", Type::f32, Dim::layers, Dim::heads, Dim::heads, Need::measured,
                      "Jensen-Shannon divergence of two heads' window_attention, renormalized over the prefix, nats");
inline constexpr DataSet last_logits = describe_data_set("full/last_logits", Type::f32, Dim::vocab, Need::measured,
                                                         "logits after the prompt's last token");

inline constexpr const DataSet* data_sets[] = {
    &token_ids,
    &token_text,
    &window_attention,
    &query_similarity,
    &adjacent_similarity_q,
    &adjacent_similarity_k,
    &adjacent_similarity_v,
    &mode_contribution_q,
    &mode_contribution_k,
    &mode_contribution_v,
    &layer_similarity_k,
    &layer_similarity_v,
    &head_similarity_k,
    &head_similarity_v,
    &gradient_alignment_c11,
    &gradient_alignment_c12,
    &gradient_alignment_c22,
    &head_jsd,
    &last_logits,
};
/// Data sets that a prompt with `context_of` takes from that prompt. last_logits depends on the question.
inline constexpr const DataSet* shared_data_sets[] = {
    &window_attention,       &query_similarity,       &adjacent_similarity_q,  &adjacent_similarity_k,
    &adjacent_similarity_v,  &mode_contribution_q,    &mode_contribution_k,    &mode_contribution_v,
    &layer_similarity_k,     &layer_similarity_v,     &head_similarity_k,      &head_similarity_v,
    &gradient_alignment_c11, &gradient_alignment_c12, &gradient_alignment_c22, &head_jsd,
};
}  // namespace prompt

namespace run {
inline constexpr std::string_view granularity_kv_head = "kv_head";
inline constexpr std::string_view granularity_query_head = "query_head";
inline constexpr std::string_view status_complete = "complete";
inline constexpr std::string_view status_failed = "failed";
inline constexpr std::string_view mode_shared = "shared";
inline constexpr std::string_view mode_isolated = "isolated";
inline constexpr std::string_view budget_of_bytes = "bytes";

inline constexpr Attribute attributes[] = {
    {"policy", AttributeType::text, Need::always, "the policy's name, e.g. snapkv"},
    {"label", AttributeType::text, Need::always, "name of the run in figures"},
    {"parameters_json", AttributeType::text, Need::always, "all of the policy's parameters, defaults included"},
    {"budget", AttributeType::integer, Need::always, "entries kept per KV head and layer; N for the policy full"},
    {"budget_fraction", AttributeType::real, Need::always, "budget / N"},
    {"budget_of", AttributeType::text, Need::sometimes,
     "bytes if every token is kept and budget_fraction is a share of the full cache's bytes; absent for entry budgets"},
    {"window", AttributeType::integer, Need::always, "number of window queries that the policy used; 0 if none"},
    {"seed", AttributeType::integer, Need::always, "seed of random policies"},
    {"granularity", AttributeType::text, Need::always, "kv_head (R = G) or query_head (R = H)"},
    {"status", AttributeType::text, Need::always, "complete or failed"},
    {"message", AttributeType::text, Need::always,
     "why the run failed or could not be compared with full; empty otherwise"},
    {"mode", AttributeType::text, Need::always, "shared or isolated"},
    {"prefill_s", AttributeType::real, Need::always, "seconds for the prefill"},
    {"select_s", AttributeType::real, Need::always, "seconds for the policy's decisions"},
    {"output_text", AttributeType::text, Need::always, "text that the run generated"},
    {"device", AttributeType::text, Need::sometimes, "cpu, or the name of the device that computed the run"},
    {"instructions", AttributeType::text, Need::sometimes, "instruction set of the kernels, e.g. avx2"},
    {"commit", AttributeType::text, Need::sometimes, "kvscope commit that computed the run"},
    {"tied_heads", AttributeType::real, Need::sometimes,
     "share of the rows in which a kept position has the score of the best dropped position"},
    {"first_token_s", AttributeType::real, Need::sometimes, "isolated mode: seconds to the first token"},
    {"decode_s", AttributeType::real, Need::sometimes, "isolated mode: seconds for decoding"},
    {"decode_tokens_per_s", AttributeType::real, Need::sometimes, "isolated mode: tokens per second while decoding"},
    {"peak_bytes", AttributeType::integer, Need::sometimes,
     "isolated mode: highest resident set during the run minus the resident set before the prefill"},
};

inline constexpr DataSet kept_offsets =
    describe_data_set("kept_offsets", Type::u64, Dim::row_offsets, Need::always,
                      "row l·R+r of kept_indices is [offsets[row], offsets[row+1])");
inline constexpr DataSet kept_indices = describe_data_set("kept_indices", Type::u32, Dim::entries, Need::always,
                                                          "prompt positions kept, ascending in each row");
inline constexpr DataSet scores =
    describe_data_set("scores", Type::f32_or_f64, Dim::layers, Dim::rows, Dim::visible_tokens, Need::sometimes,
                      "scores by which the policy ranked positions; NaN if a position is not a candidate");
inline constexpr DataSet head_jsd =
    describe_data_set("head_jsd", Type::f32, Dim::layers, Dim::rows, Dim::rows, Need::sometimes,
                      "Jensen-Shannon divergence of the policy's own scores for each pair of rows, nats");
inline constexpr DataSet merged_token_entry =
    describe_data_set("merged/token_entry", Type::i32, Dim::layers, Dim::rows, Dim::visible_tokens, Need::sometimes,
                      "index of the token's entry within its row; -1 if the token was dropped");
inline constexpr DataSet merged_cardinality = describe_data_set(
    "merged/cardinality", Type::f32_or_u16, Dim::entries, Need::sometimes, "n of each entry as attention uses it");
inline constexpr DataSet merged_keys = describe_data_set(
    "merged/keys", Type::u64, Dim::layers, Need::sometimes,
    "number of keys made by merging while the prompt was read, over all heads, including keys merged again");
inline constexpr DataSet merged_keys_outside =
    describe_data_set("merged/keys_outside", Type::u64, Dim::layers, Need::sometimes,
                      "number of these keys with a merge weight outside [0, 1]");
inline constexpr DataSet channels_kept = describe_data_set(
    "channels_kept", Type::u8, Dim::layers, Dim::rows, Dim::head_dim, Need::sometimes, "1 if the key channel is kept");
inline constexpr DataSet channel_scores =
    describe_data_set("channel_scores", Type::f32, Dim::layers, Dim::rows, Dim::head_dim, Need::sometimes,
                      "scores by which the policy ranked key channels");
inline constexpr DataSet stored_entries = describe_data_set(
    "stored/entries", Type::u32, Dim::layers, Dim::rows, Need::sometimes,
    "number of entries per row that are not whole keys and values: the first ones, unless stored/is_whole exists");
inline constexpr DataSet stored_is_whole =
    describe_data_set("stored/is_whole", Type::u8, Dim::entries, Need::sometimes,
                      "1 if the entry is a whole key and value; absent if the other entries come first in each row");
inline constexpr DataSet stored_key_width = describe_data_set(
    "stored/key_width", Type::f32, Dim::layers, Dim::rows, Need::sometimes,
    "mean count of numbers stored per key of an entry that is not whole; d if all entries of the row are whole");
inline constexpr DataSet stored_value_width =
    describe_data_set("stored/value_width", Type::f32, Dim::layers, Dim::rows, Need::sometimes, "the same for values");
inline constexpr DataSet stored_key_error =
    describe_data_set("stored/key_error", Type::f32, Dim::layers, Dim::rows, Need::sometimes,
                      "relative error (2-norm over all tokens) of the keys that the cache returns");
inline constexpr DataSet stored_value_error =
    describe_data_set("stored/value_error", Type::f32, Dim::layers, Dim::rows, Need::sometimes, "the same for values");
inline constexpr DataSet stored_whole_bytes = describe_data_set(
    "stored/whole_bytes", Type::u64, Dim::layers, Need::sometimes, "predicted bytes of keys and values with d numbers");
inline constexpr DataSet stored_channel_bytes =
    describe_data_set("stored/channel_bytes", Type::u64, Dim::layers, Need::sometimes,
                      "predicted bytes of partly kept channels and their indices");
inline constexpr DataSet stored_mapped_bytes =
    describe_data_set("stored/mapped_bytes", Type::u64, Dim::layers, Need::sometimes,
                      "predicted bytes of numbers from which matrices rebuild keys and values");
inline constexpr DataSet stored_mass_bytes =
    describe_data_set("stored/mass_bytes", Type::u64, Dim::layers, Need::sometimes, "predicted bytes of cardinalities");
inline constexpr DataSet switch_steps = describe_data_set(
    "switches/step", Type::u32, Dim::any, Need::sometimes,
    "ascending steps of the answer, from 0, after which the run's cache changed between compressed and full");
inline constexpr DataSet switch_is_full = describe_data_set("switches/is_full", Type::u8, Dim::any, Need::sometimes,
                                                            "1 if the cache became full after that step");
inline constexpr DataSet output_ids = describe_data_set("output_ids", Type::i32, Dim::any, Need::always,
                                                        "token ids that the run generated, end of text included");
inline constexpr DataSet step_kl =
    describe_data_set("step_kl", Type::f32, Dim::steps, Need::measured,
                      "KL(full || compressed), nats; all runs read the full run's tokens; step 0 follows the prompt");
inline constexpr DataSet step_agreement = describe_data_set("step_agreement", Type::u8, Dim::steps, Need::measured,
                                                            "1 if the greedy token equals the full run's greedy token");
inline constexpr DataSet attention_kept =
    describe_data_set("attention_kept", Type::f32, Dim::layers, Dim::heads, Need::measured,
                      "share of the window's full attention that falls on kept entries");
inline constexpr DataSet output_error =
    describe_data_set("output_error", Type::f32, Dim::layers, Dim::heads, Need::measured,
                      "relative error of the attention output, mean over the decode steps");
inline constexpr DataSet recall =
    describe_data_set("recall", Type::f32, Dim::layers, Dim::rows, Need::sometimes,
                      "kept share of the B tokens with the largest answer_attention, where that data set is left out");
inline constexpr DataSet cache_bytes =
    describe_data_set("cache_bytes", Type::u64, Dim::layers, Need::measured,
                      "bytes of keys and values in memory after compression, padding included");
inline constexpr DataSet cache_bytes_predicted = describe_data_set(
    "cache_bytes_predicted", Type::u64, Dim::layers, Need::measured, "bytes that the kept entries require");
inline constexpr DataSet head_bytes = describe_data_set("head_bytes", Type::u64, Dim::layers, Dim::rows, Need::measured,
                                                        "bytes of the entries of each row");
inline constexpr DataSet lookahead_ids =
    describe_data_set("lookahead_ids", Type::i32, Dim::any, Need::sometimes, "policy laq: ids of the lookahead tokens");
inline constexpr DataSet pseudo_ids =
    describe_data_set("pseudo_ids", Type::i32, Dim::any, Need::sometimes, "policy dapq: ids of the pseudo tokens");
inline constexpr DataSet answer_attention = describe_data_set(
    "answer_attention", Type::f32, Dim::layers, Dim::kv_heads, Dim::visible_tokens, Need::sometimes,
    "policy full: attention of the answer's queries, summed over queries, averaged over a KV head's query heads");
inline constexpr DataSet kl_attention_lost = describe_data_set(
    "kl_attention_lost", Type::f32, Dim::layers, Dim::visible_tokens, Need::sometimes,
    "sum over decode steps of the step's KL times the full cache's attention on tokens without an entry, nats");

inline constexpr const DataSet* data_sets[] = {
    &kept_offsets,
    &kept_indices,
    &scores,
    &head_jsd,
    &merged_token_entry,
    &merged_cardinality,
    &channels_kept,
    &output_ids,
    &step_kl,
    &step_agreement,
    &attention_kept,
    &output_error,
    &recall,
    &cache_bytes,
    &head_bytes,
    &lookahead_ids,
    &pseudo_ids,
    &cache_bytes_predicted,
    &answer_attention,
    &kl_attention_lost,
    &channel_scores,
    &stored_entries,
    &stored_is_whole,
    &stored_key_width,
    &stored_value_width,
    &stored_key_error,
    &stored_value_error,
    &stored_whole_bytes,
    &stored_channel_bytes,
    &stored_mapped_bytes,
    &stored_mass_bytes,
    &merged_keys,
    &merged_keys_outside,
    &switch_steps,
    &switch_is_full,
};
/// Attribute of a part that names a run of the same prompt with equal scores. A finished trace has a hard link instead.
inline constexpr std::string_view scores_of_attribute = "scores_of";
/// Data sets that a prompt's run shares with the equally numbered run of the prompt `context_of`.
inline constexpr const DataSet* shared_data_sets[] = {&kept_offsets, &kept_indices, &scores};
}  // namespace run

}  // namespace kvscope::trace::schema
