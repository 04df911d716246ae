#pragma once

#include <string>

#include "engine/active_run.h"
#include "engine/inference/compare.h"
#include "engine/inference/generate.h"
#include "engine/model/model.h"
#include "engine/score_pool.h"
#include "trace/records.h"

namespace kvscope::engine {

/// A run's record with its answer. A run that failed on the way there keeps what it has got.
/// @param room for its scores
trace::RunRecord record_of_answer(const Model& model, const ActiveRun& run, const Generation& generation,
                                  ScoreRoom& room);

void set_failed(trace::RunRecord& record, const std::string& error);

/// With the full cache's answer; one that failed makes the run a failed one.
void add_comparison(trace::RunRecord& record, const Comparison& comparison);

/// A run that has an answer, but none of the full cache's to compare it with.
void set_not_compared(trace::RunRecord& record);

}  // namespace kvscope::engine
