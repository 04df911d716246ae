#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/common/progress.h"
#include "engine/experiment.h"
#include "engine/model/model.h"
#include "engine/tasks/api/task.h"
#include "trace/records/records.h"
#include "trace/writer.h"

namespace kvscope::engine {

struct PreparedSample : TaskSample {
    Prompt prompt;
    [[nodiscard]] std::string hash() const { return hash_of_sample(context, question, answers); }
};

/// Added to the number of a sample whose question policies do not see, if the job answers each sample in both ways.
inline constexpr int hidden_question_offset = 1 << 30;

/// Returns the task's samples with their prompts. @param prompt options of all prompts except their names; an `n_new`
/// other than the task's replaces that of the samples @param in_both_ways whether each sample with a question occurs
/// twice: policies see its question, and policies do not @param left_out see SampleRequest; also gets the reason for
/// each prompt that exceeds the model's context
/// @throws UsageError if all prompts exceed the model's context; the exceptions of Task::make_samples
[[nodiscard]] std::vector<PreparedSample> prepare_samples(const Model& model, const Task& task,
                                                          const TaskOptions& options, PromptOptions prompt,
                                                          bool in_both_ways = false,
                                                          std::vector<std::string>* left_out = nullptr);

/// Sets the score of the row's prediction, and its answers and metric. A failed run has the score 0.
void add_score(trace::ResultRow& row, const Scorer& scorer, std::span<const std::string> answers);

/// Answers every sample with all plans and writes one batch of /results/<task> per sample, with a row for each plan.
/// Each row gets an equal part of the sample's `seconds`. Consecutive samples about one context, whose questions
/// policies do not see, share the prefill and the compressed caches; the first of them gets the time of both.
/// @param on_sample called with the rows of each new sample and its time
/// @param on_begun called before the runs of each new sample; may be empty
void evaluate_task(
    const Model& model, const Task& task, std::span<const PreparedSample> samples, const std::vector<RunPlan>& plans,
    const ExperimentOptions& options, trace::Writer& writer, Progress& progress,
    const std::function<void(size_t sample, std::span<const trace::ResultRow>, double seconds)>& on_sample,
    const std::function<void(size_t sample)>& on_begun = nullptr);

}  // namespace kvscope::engine
