// Maps the names of attributes and data sets to members of records, for the writer and the reader.
#pragma once

#include "trace/records/records.h"
#include "trace/records/schema.h"

namespace kvscope::trace {

template <class Attributes, class Visit>
void for_each_model_attribute(Attributes& a, Visit visit) {
    visit("name", a.name);
    visit("family", a.family);
    visit("fingerprint", a.fingerprint);
    visit("dtype", a.dtype);
    visit("n_layers", a.n_layers);
    visit("n_heads", a.n_heads);
    visit("n_kv_heads", a.n_kv_heads);
    visit("head_dim", a.head_dim);
    visit("hidden_size", a.hidden_size);
    visit("vocab_size", a.vocab_size);
    visit("rope_theta", a.rope_theta);
    visit("config_json", a.config_json);
}

template <class Record, class Visit>
void for_each_model_data_set(Record& r, Visit visit) {
    visit(schema::model::spectrum_q, r.spectrum_q);
    visit(schema::model::spectrum_k, r.spectrum_k);
    visit(schema::model::spectrum_v, r.spectrum_v);
    visit(schema::model::head_spectrum_q, r.head_spectrum_q);
    visit(schema::model::head_spectrum_k, r.head_spectrum_k);
    visit(schema::model::head_spectrum_v, r.head_spectrum_v);
}

template <class Attributes, class Visit>
void for_each_prompt_attribute(Attributes& a, Visit visit) {
    visit("name", a.name);
    visit("text", a.text);
    visit("question", a.question);
    visit("template", a.chat_template);
    visit("n_tokens", a.n_tokens);
    visit("n_context", a.n_context);
    visit("query_aware", a.query_aware);
    visit("eos_ids", a.eos_ids);
    visit("truncated", a.truncated);
    visit("context_of", a.context_of);
    visit("n_system", a.n_system);
}

template <class Record, class Visit>
void for_each_prompt_data_set(Record& r, Visit visit) {
    visit(schema::prompt::token_ids, r.token_ids);
    visit(schema::prompt::token_text, r.token_text);
    visit(schema::prompt::window_attention, r.window_attention);
    visit(schema::prompt::query_similarity, r.query_similarity);
    visit(schema::prompt::adjacent_similarity_q, r.adjacent_similarity_q);
    visit(schema::prompt::adjacent_similarity_k, r.adjacent_similarity_k);
    visit(schema::prompt::adjacent_similarity_v, r.adjacent_similarity_v);
    visit(schema::prompt::mode_contribution_q, r.mode_contribution_q);
    visit(schema::prompt::mode_contribution_k, r.mode_contribution_k);
    visit(schema::prompt::mode_contribution_v, r.mode_contribution_v);
    visit(schema::prompt::layer_similarity_k, r.layer_similarity_k);
    visit(schema::prompt::layer_similarity_v, r.layer_similarity_v);
    visit(schema::prompt::head_similarity_k, r.head_similarity_k);
    visit(schema::prompt::head_similarity_v, r.head_similarity_v);
    visit(schema::prompt::gradient_alignment_c11, r.gradient_alignment_c11);
    visit(schema::prompt::gradient_alignment_c12, r.gradient_alignment_c12);
    visit(schema::prompt::gradient_alignment_c22, r.gradient_alignment_c22);
    visit(schema::prompt::head_jsd, r.head_jsd);
    visit(schema::prompt::last_logits, r.last_logits);
}

template <class Attributes, class Visit>
void for_each_run_attribute(Attributes& a, Visit visit) {
    visit("policy", a.policy);
    visit("label", a.label);
    visit("parameters_json", a.parameters_json);
    visit("budget", a.budget);
    visit("budget_fraction", a.budget_fraction);
    visit("budget_of", a.budget_of);
    visit("window", a.window);
    visit("seed", a.seed);
    visit("granularity", a.granularity);
    visit("status", a.status);
    visit("message", a.message);
    visit("mode", a.mode);
    visit("prefill_s", a.prefill_s);
    visit("select_s", a.select_s);
    visit("output_text", a.output_text);
    visit("device", a.device);
    visit("instructions", a.instructions);
    visit("commit", a.commit);
    visit("tied_heads", a.tied_heads);
    visit("first_token_s", a.first_token_s);
    visit("decode_s", a.decode_s);
    visit("decode_tokens_per_s", a.decode_tokens_per_s);
    visit("peak_bytes", a.peak_bytes);
}

/// Visits `scores` twice, as f32 and as f64. At most one of the two vectors is filled.
template <class Record, class Visit>
void for_each_run_data_set(Record& r, Visit visit) {
    visit(schema::run::kept_offsets, r.kept_offsets);
    visit(schema::run::kept_indices, r.kept_indices);
    visit(schema::run::scores, r.scores);
    visit(schema::run::scores, r.scores_f64);
    visit(schema::run::head_jsd, r.head_jsd);
    visit(schema::run::merged_token_entry, r.merged_token_entry);
    visit(schema::run::merged_cardinality, r.merged_cardinality);
    visit(schema::run::merged_keys, r.merged_keys);
    visit(schema::run::merged_keys_outside, r.merged_keys_outside);
    visit(schema::run::channels_kept, r.channels_kept);
    visit(schema::run::channel_scores, r.channel_scores);
    visit(schema::run::stored_entries, r.stored_entries);
    visit(schema::run::stored_is_whole, r.stored_is_whole);
    visit(schema::run::stored_key_width, r.stored_key_width);
    visit(schema::run::stored_value_width, r.stored_value_width);
    visit(schema::run::stored_key_error, r.stored_key_error);
    visit(schema::run::stored_value_error, r.stored_value_error);
    visit(schema::run::stored_whole_bytes, r.stored_whole_bytes);
    visit(schema::run::stored_channel_bytes, r.stored_channel_bytes);
    visit(schema::run::stored_mapped_bytes, r.stored_mapped_bytes);
    visit(schema::run::stored_mass_bytes, r.stored_mass_bytes);
    visit(schema::run::switch_steps, r.switch_steps);
    visit(schema::run::switch_is_full, r.switch_is_full);
    visit(schema::run::output_ids, r.output_ids);
    visit(schema::run::step_kl, r.step_kl);
    visit(schema::run::step_agreement, r.step_agreement);
    visit(schema::run::attention_kept, r.attention_kept);
    visit(schema::run::output_error, r.output_error);
    visit(schema::run::recall, r.recall);
    visit(schema::run::cache_bytes, r.cache_bytes);
    visit(schema::run::cache_bytes_predicted, r.cache_bytes_predicted);
    visit(schema::run::head_bytes, r.head_bytes);
    visit(schema::run::lookahead_ids, r.lookahead_ids);
    visit(schema::run::pseudo_ids, r.pseudo_ids);
    visit(schema::run::answer_attention, r.answer_attention);
    visit(schema::run::kl_attention_lost, r.kl_attention_lost);
}

}  // namespace kvscope::trace
