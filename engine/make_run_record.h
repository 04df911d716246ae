#pragma once

#include <string>

#include "engine/active_run.h"
#include "engine/decode/compare.h"
#include "engine/decode/decode_answers.h"
#include "engine/deduplicated_scores.h"
#include "engine/model/model.h"
#include "trace/records/records.h"

namespace kvscope::engine {

/// Returns a run's record with its answer. If the run failed, the record contains the results before the failure.
[[nodiscard]] trace::RunRecord make_run_record_with_answer(const Model& model, const ActiveRun& run,
                                                           const Generation& generation, ScoreBuffer& room);

void record_failure(trace::RunRecord& record, const std::string& error);

/// Adds the comparison with the full run, or marks the run as failed if the comparison failed.
void add_comparison(trace::RunRecord& record, const Comparison& comparison);

/// Records that the answer was not compared, because the full run failed.
void mark_as_not_compared(trace::RunRecord& record);

}  // namespace kvscope::engine
