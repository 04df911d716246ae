#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "engine/task_evaluation.h"

namespace kvscope::engine {

/// HeadKV's measures of a head: R counts copied needle tokens, R2 sums the attention to the needle.
enum class HeadMeasure { retrieval, reasoning };

/// Returns the task niah with the defaults of a head profile.
[[nodiscard]] const Task& head_profile_task();

struct HeadProfile {
    int n_right = 0;  ///< number of correct answers; only these count
    /// Scores of each query head (L, H), one per correct answer. The mean of the scores is the head's importance.
    std::vector<std::vector<double>> scores;
};

/// Returns the prompts of a profile. The seed increases by 1 for each prompt. @param needles values of
/// head_profile_task(); `measure` overrides the option `needle` @throws UsageError if a prompt exceeds the model's
/// context
[[nodiscard]] std::vector<PreparedSample> prepare_head_profile(const Model& model, HeadMeasure measure,
                                                               TaskOptions needles, const PromptOptions& prompt);

/// Measures how much each query head contributes to finding a needle, from the full run's greedy answers. An answer
/// counts only if it contains the number and its ROUGE-1 recall (retrieval) or F1 (reasoning) exceeds 0.5. At each
/// step, for a needle of n tokens: R grows by 1 / n if the head's most attended token is in the needle and equals the
/// generated token. R2 grows by attention / n for each needle token among the head's n most attended tokens.
/// @param n_new largest number of answer tokens @param on_sample called after each prompt; may be empty
/// @throws RunError if no answer is correct
[[nodiscard]] HeadProfile profile_heads(
    const Model& model, HeadMeasure measure, std::span<const PreparedSample> samples, int64_t n_new, Progress& progress,
    const std::function<void(size_t sample, bool is_right, double seconds)>& on_sample = nullptr);

/// Returns the JSON format of HeadKV: {"layer-head": [score, …], …}.
[[nodiscard]] std::string to_headkv_json(const HeadProfile& profile, const policies::ModelShape& shape);

}  // namespace kvscope::engine
