#include "engine/run_records.h"

#include "analysis/measures/kept_sets.h"
#include "analysis/measures/recall.h"
#include "engine/common/stopwatch.h"

namespace kvscope::engine {

trace::RunRecord make_run_record_with_answer(const Model& model, const ActiveRun& run, const Generation& generation,
                                             ScoreBuffer& room, const std::stop_token& stop) {
    trace::RunRecord record = run.whole_record(room);
    record.output_ids = generation.ids;
    record.output_text = model.answer_text(generation.ids, stop);
    for (const int64_t step : generation.switching.steps) {
        record.switch_steps.push_back(static_cast<uint32_t>(step));
        record.switch_is_full.push_back(generation.switching.is_full_at(step) ? 1 : 0);
    }
    if (!generation.error.empty()) record_failure(record, generation.error);
    return record;
}

void record_failure(trace::RunRecord& record, const std::string& error) {
    record.status = trace::schema::run::status_failed;
    record.message = error;
}

void add_comparison(trace::RunRecord& record, const Comparison& comparison) {
    if (!comparison.error.empty()) {
        record_failure(record, "comparing with the full cache: " + comparison.error);
        return;
    }
    record.step_kl = comparison.step_kl;
    record.step_agreement = comparison.step_agreement;
    record.output_error = comparison.output_error;
    record.kl_attention_lost = comparison.attention_lost;
}

void add_answer_attention(trace::RunRecord& record, const std::vector<float>& attention,
                          const policies::ModelShape& shape, int64_t n_context, const RunOptions& options) {
    if (attention.empty() || record.status == trace::schema::run::status_failed) return;
    if (!options.stores_only_measures()) {
        if (record.policy == full_policy) record.answer_attention = attention;
        return;
    }
    const analysis::HeldTokens held(record, static_cast<size_t>(shape.n_layers), static_cast<size_t>(n_context));
    if (!analysis::can_measure_kept_tokens(record, held.sets())) return;
    const auto recall = analysis::recall_of_run(attention, static_cast<size_t>(shape.n_kv_heads), held.sets(),
                                                static_cast<size_t>(record.budget));
    record.recall.assign(recall.heads.begin(), recall.heads.end());
}

void omit_values_of_tokens(trace::PromptRecord& record) {
    record.window_attention.clear();
    record.query_similarity.clear();
    record.last_logits.clear();
}

void omit_values_of_tokens(trace::RunRecord& record) {
    record.scores.clear();
    record.scores_f64.clear();
}

void mark_as_not_compared(trace::RunRecord& record) {
    record.message = "not compared with the full cache, because the full run failed";
}

void ResultWriter::write(const trace::ModelRecord& record) {
    if (!has_model()) writer_->write_model(record);
}

void ResultWriter::write(int prompt, const trace::PromptRecord& record) {
    if (!writer_ || writer_->has_prompt(prompt)) return;
    const Stopwatch watch;
    writer_->write_prompt(prompt, record);
    timings_.write_s += watch.seconds();
}

void ResultWriter::write(int prompt, int run, const trace::RunRecord& record) {
    const Stopwatch watch;
    if (writer_) writer_->write_run(prompt, run, record);
    timings_.write_s += watch.seconds();
    ++timings_.n_runs;
    if (owner_.on_run) owner_.on_run(prompt, run, record);
}

bool ResultWriter::is_finished(int prompt) const {
    if (!writer_ || !writer_->has_prompt(prompt)) return false;
    for (int run = 0; run < n_plans_; ++run) {
        if (!writer_->has_run(prompt, run)) return false;
    }
    return true;
}

}  // namespace kvscope::engine
