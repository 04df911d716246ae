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

/// Number of samples of a length and depth in one round. Seeds are consecutive within a round; each round continues
/// after all seeds of the round before it.
constexpr int samples_of_a_round = 3;

/// One sample of a task: a prompt and the text that a correct answer contains.
struct TaskSample {
    std::string id;
    int number = 0;  ///< number of its batch in the trace, which does not depend on the number of samples
    Prompt prompt;
    std::string answer;
    int64_t length = 0;  ///< requested length in tokens
    double depth = 0;    ///< NaN if the task has no needle
};

/// Settings of the needle task.
struct NeedleTask {
    std::vector<int64_t> lengths{500, 1000, 2000, 4000};
    std::vector<double> depths{0.1, 0.3, 0.5, 0.7, 0.9};
    int n_seeds = 3;       ///< number of samples for each length and depth
    uint64_t seed = 0;     ///< seed of the first sample
    std::string haystack;  ///< text of the haystack; RULER's noise if empty
    PromptOptions prompt;
};

/// Returns the samples "niah-<length>-<depth>-<number>" in the order of their batches: round by round
/// (`samples_of_a_round`), and by length within a round. A sample depends only on the seed and its own place, so
/// samples that are added later do not change it.
/// @throws UsageError if a prompt does not fit in the model's context
std::vector<TaskSample> needle_samples(const Model& model, const NeedleTask& task);

/// Answers every sample with all plans through one shared prefill. Writes one batch of /results/<task> for each sample,
/// with a row for each plan in order. Rows in the trace are kept, and rows of further plans come after them. A plan
/// that cannot run on a sample gets a failed row. The `seconds` of a row are the sample's time divided by the number of
/// runs. Answers are scored with RULER's string_match_all.
/// @param on_sample called with all rows of each new sample and its time
/// @throws exceptions of the writer
void evaluate(const Model& model, const std::string& task, std::span<const TaskSample> samples,
              const std::vector<RunPlan>& plans, const ExperimentOptions& options, trace::Writer& writer,
              Progress& progress,
              const std::function<void(size_t sample, std::span<const trace::ResultRow>, double seconds)>& on_sample);

}  // namespace kvscope::engine
