#include "engine/make_run_record.h"

namespace kvscope::engine {

trace::RunRecord make_run_record_with_answer(const Model& model, const ActiveRun& run, const Generation& generation,
                                             ScoreBuffer& room) {
    trace::RunRecord record = run.whole_record(room);
    record.output_ids = generation.ids;
    record.output_text = model.answer_text(generation.ids);
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

void mark_as_not_compared(trace::RunRecord& record) {
    record.message = "not compared with the full cache, because the full run failed";
}

}  // namespace kvscope::engine
