#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/active_run.h"
#include "engine/decode/compare.h"
#include "engine/decode/decode_answers.h"
#include "engine/deduplicated_scores.h"
#include "engine/experiment.h"
#include "engine/model/model.h"
#include "engine/prefill/prompt.h"
#include "trace/records/records.h"
#include "trace/writer.h"

namespace kvscope::engine {

/// Returns a run's record with its answer. If the run failed, the record contains the results before the failure.
[[nodiscard]] trace::RunRecord make_run_record_with_answer(const Model& model, const ActiveRun& run,
                                                           const Generation& generation, ScoreBuffer& room,
                                                           const std::stop_token& stop);

void record_failure(trace::RunRecord& record, const std::string& error);

/// Adds the comparison with the full run, or marks the run as failed if the comparison failed.
void add_comparison(trace::RunRecord& record, const Comparison& comparison);

/// Adds the attention of the full run's answer to the full run or, if the trace stores only measures, a run's recall.
/// @param attention (L, G, N); empty if unknown
void add_answer_attention(trace::RunRecord& record, const std::vector<float>& attention,
                          const policies::ModelShape& shape, int64_t n_context, const RunOptions& options);

// These functions remove what a trace omits if it stores only measures.
void omit_values_of_tokens(trace::PromptRecord& record);
void omit_values_of_tokens(trace::RunRecord& record);

/// Records that the answer was not compared, because the full run failed.
void mark_as_not_compared(trace::RunRecord& record);

/// Passes finished prompts and runs to the trace, if any, and to the experiment's callbacks.
class ResultWriter {
 public:
    ResultWriter(const Experiment& owner, trace::Writer* writer, size_t n_plans, Timings& timings)
        : owner_(owner), writer_(writer), n_plans_(static_cast<int>(n_plans)), timings_(timings) {}

    void write(const trace::ModelRecord& record);
    void write(int prompt, const trace::PromptRecord& record);
    void write(int prompt, int run, const trace::RunRecord& record);

    [[nodiscard]] bool has_model() const { return !writer_ || writer_->has_model(); }
    [[nodiscard]] bool has_run(int prompt, int run) const { return writer_ && writer_->has_run(prompt, run); }
    [[nodiscard]] bool is_finished(int prompt) const;

 private:
    const Experiment& owner_;
    trace::Writer* writer_;
    int n_plans_;
    Timings& timings_;
};

}  // namespace kvscope::engine
