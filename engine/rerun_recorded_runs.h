#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/common/progress.h"
#include "engine/decode/conversation.h"
#include "engine/experiment.h"
#include "engine/model/model.h"
#include "trace/reader.h"

namespace kvscope::engine {

/// Returns the options that decoded a trace's answers; without a recipe, greedy options for the full answer's length.
[[nodiscard]] ExperimentOptions options_of_recorded_answers(const trace::Reader& reader, int prompt);

/// Returns the policy and budget of a recorded run or what-if. @throws UsageError if this build lacks the policy
[[nodiscard]] RunPlan plan_of_recorded_run(const trace::RunAttributes& run);

struct RepeatedRun {
    trace::RunRecord record;              ///< with status "failed" if the run failed
    std::shared_ptr<Conversation> cache;  ///< nullptr if the run failed
    int64_t n_other = 0;                  ///< number of entries that only one of the two runs keeps
};

/// Repeats runs of a trace's prompt from its recorded token ids, with one prefill. Returns one result for each run.
/// @param answers whether to decode answers and record all measures; if false, only the caches are valid
/// @throws UsageError if another model made the trace or no run can be repeated
[[nodiscard]] std::vector<RepeatedRun> rerun_recorded_runs(
    const Model& model, const trace::Reader& reader, int prompt, std::span<const int> runs, bool answers,
    Progress& progress, const std::function<void(size_t, int32_t)>& on_token = nullptr);

}  // namespace kvscope::engine
