#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/common/progress.h"
#include "engine/experiment.h"
#include "engine/inference/conversation.h"
#include "engine/model/model.h"
#include "trace/reader.h"

namespace kvscope::engine {

/// Returns how a trace's answers were decoded. Without a recipe: greedily, as long as the full answer.
ExperimentOptions recorded_options(const trace::Reader& reader, int prompt);

/// Returns the policy and budget of a recorded run or a what-if. @throws UsageError if this build lacks the policy
RunPlan recorded_plan(const trace::RunAttributes& run);

/// A run that was made again.
struct RepeatedRun {
    trace::RunRecord record;              ///< record, whose status is "failed" if the run failed
    std::shared_ptr<Conversation> cache;  ///< nullptr if the run failed
    int64_t n_other = 0;                  ///< number of entries that only one of both runs keeps
};

/// Makes runs of a trace's prompt again, from its exact token ids, with one prefill. Returns one result for each run.
/// @param runs indices in the reader; may include what-ifs
/// @param answers whether to decode answers and record all measures; otherwise only the caches are useful
/// @throws UsageError if the trace was made with another model or no run can be made
std::vector<RepeatedRun> repeat_runs(const Model& model, const trace::Reader& reader, int prompt,
                                     std::span<const int> runs, bool answers, Progress& progress,
                                     const std::function<void(size_t, int32_t)>& on_token = nullptr);

}  // namespace kvscope::engine
