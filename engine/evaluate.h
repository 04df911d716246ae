#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/experiment.h"
#include "engine/model/model.h"
#include "engine/needle.h"
#include "trace/records.h"
#include "trace/writer.h"

namespace kvscope::engine {

/// Samples of a length and depth whose seeds follow one another; further ones have theirs behind all of these.
constexpr int samples_of_a_round = 3;

/// One sample of a task: a prompt and what a right answer contains.
struct TaskSample {
    std::string id;
    int number = 0;  ///< of its batch in the trace: the same however many samples there are beside it
    Prompt prompt;
    std::string answer;
    int64_t length = 0;  ///< as asked for, in tokens
    double depth = 0;    ///< NaN where the task has no needle
};

struct NeedleTask {
    std::vector<int64_t> lengths{500, 1000, 2000, 4000};
    std::vector<double> depths{0.1, 0.3, 0.5, 0.7, 0.9};
    int n_seeds = 3;       ///< samples for each length and depth
    uint64_t seed = 0;     ///< of the first sample
    std::string haystack;  ///< text; empty: RULER's noise
    PromptOptions prompt;
};

/// The samples "niah-<length>-<depth>-<number>" in the order of their batches: for each three of a length and depth
/// (`samples_of_a_round`) lengths outermost. What a sample asks depends on the seed and its place alone, so that more
/// samples are further ones beside those that there are.
/// @throws UsageError where a prompt does not fit in the model's context
std::vector<TaskSample> needle_samples(const Model& model, const NeedleTask& task);

/// Answers every sample with all plans through one shared prefill and writes one batch of /results/<task> a sample: a
/// row for each plan, in their order. Rows that the trace holds are kept, and those of further plans come after them.
/// A plan that cannot run on a sample is a failed row. A row's `seconds` is the sample's time divided by the runs that
/// shared it. Scored as RULER's string_match_all.
/// @param on_sample called with all rows of each sample that was worked on, and how long that took
/// @throws Cancelled; what the writer throws
void evaluate(const Model& model, const std::string& task, std::span<const TaskSample> samples,
              const std::vector<RunPlan>& plans, const ExperimentOptions& options, trace::Writer& writer,
              Progress& progress,
              const std::function<void(size_t sample, std::span<const trace::ResultRow>, double seconds)>& on_sample);

}  // namespace kvscope::engine
