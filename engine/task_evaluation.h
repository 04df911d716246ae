#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/experiment.h"
#include "engine/model/model.h"
#include "engine/needle.h"
#include "trace/records/records.h"
#include "trace/writer.h"

namespace kvscope::engine {

/// Number of samples for each length and depth in one round. Seeds continue from round to round.
inline constexpr int samples_of_a_round = 3;

/// A prompt of a task and the text that a correct answer contains.
struct TaskSample {
    std::string id;
    int number = 0;  ///< number of its batch in the trace, independent of the number of samples
    Prompt prompt;
    std::string answer;
    int64_t length = 0;  ///< requested length in tokens
    double depth = 0;    ///< NaN if the task has no needle
};

struct NeedleTask {
    std::vector<int64_t> lengths{500, 1000, 2000, 4000};
    std::vector<double> depths{0.1, 0.3, 0.5, 0.7, 0.9};
    int n_seeds = 3;  ///< samples for each length and depth
    uint64_t seed = 0;
    std::string haystack;  ///< text of the haystack; RULER's noise if empty
    PromptOptions prompt;
};

/// Returns the samples "niah-<length>-<depth>-<number>", ordered by round, then by length. A sample depends only on
/// the seed and its place, so samples can be added later. @throws UsageError if a prompt exceeds the model's context
[[nodiscard]] std::vector<TaskSample> make_needle_samples(const Model& model, const NeedleTask& task);

/// Answers every sample with all plans and writes one batch of /results/<task> per sample, with a row for each plan.
/// Scores are RULER's string_match_all. Each row gets an equal part of the sample's `seconds`.
/// @param on_sample called with the rows of each new sample and its time
void evaluate_task(
    const Model& model, const std::string& task, std::span<const TaskSample> samples, const std::vector<RunPlan>& plans,
    const ExperimentOptions& options, trace::Writer& writer, Progress& progress,
    const std::function<void(size_t sample, std::span<const trace::ResultRow>, double seconds)>& on_sample);

}  // namespace kvscope::engine
