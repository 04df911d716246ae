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

/// How the answers of a trace's prompt were decoded, as its recipe says: number of new tokens, sampling, end of text,
/// seeds, window. In traces made elsewhere greedily, as many tokens as the full cache's answer has.
ExperimentOptions recorded_options(const trace::Reader& reader, int prompt);

/// The policy and the budget of a recorded run, or of a what-if.
/// @throws UsageError where this build does not know the policy or its parameters.
RunPlan recorded_plan(const trace::RunAttributes& run);

/// A run made again.
struct RepeatedRun {
    trace::RunRecord record;              ///< failed where it could not be made
    std::shared_ptr<Conversation> cache;  ///< nullptr where it failed
    int64_t n_other = 0;  ///< entries that only one of this run and the recorded one keeps: other arithmetic
};

/// Makes runs of a trace's prompt again, from its exact token ids, all with one prefill.
/// @param runs    of the reader, also what-ifs
/// @param answers with answers, `step_kl` and all that a run records; else only the caches are of use, and a recorded
///                answer stands for that of its run
/// @param on_token of the answers: place in `runs`, token
/// @returns one for each of `runs`
/// @throws UsageError where the trace was made with another model, or where no run can be made; Cancelled.
std::vector<RepeatedRun> repeat_runs(const Model& model, const trace::Reader& reader, int prompt,
                                     std::span<const int> runs, bool answers, Progress& progress,
                                     const std::function<void(size_t, int32_t)>& on_token = nullptr);

}  // namespace kvscope::engine
