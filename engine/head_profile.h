#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "engine/tasks/api/task.h"

namespace kvscope::engine {

/// HeadKV's measures of a head: R counts copied needle tokens, R2 sums the attention to the needle.
enum class HeadMeasure { retrieval, reasoning };

/// Returns the task niah with the defaults of a head profile.
[[nodiscard]] Task head_profile_task();

struct HeadProfileOptions {
    HeadMeasure measure = HeadMeasure::reasoning;
    TaskOptions needles{policies::ParameterValues(head_profile_task().parameters)};  ///< `measure` sets `needle`
    int64_t n_new = head_profile_task().n_new;  ///< greatest number of answer tokens
    bool use_template = true;                   ///< apply the model's chat template, if it has one
    bool parse_special = true;                  ///< as in PromptOptions
};

struct HeadProfile {
    int n_prompts = 0;
    int n_right = 0;  ///< number of correct answers; only these count
    /// Scores of each query head (L, H), one per correct answer. The mean of the scores is the head's importance.
    std::vector<std::vector<double>> scores;
};

/// Measures how much each query head contributes to finding a needle, from the full run's greedy answers. An answer
/// counts only if it contains the number and its ROUGE-1 recall (retrieval) or F1 (reasoning) exceeds 0.5. At each
/// step, for a needle of n tokens: R grows by 1 / n if the head's most attended token is in the needle and equals the
/// generated token. R2 grows by attention / n for each needle token among the head's n most attended tokens.
/// @throws UsageError if no prompt fits in the context; RunError if no answer is correct
[[nodiscard]] HeadProfile profile_heads(const Model& model, const HeadProfileOptions& options, Progress& progress);

/// Returns the JSON format of HeadKV: {"layer-head": [score, …], …}.
[[nodiscard]] std::string to_headkv_json(const HeadProfile& profile, const policies::ModelShape& shape);

}  // namespace kvscope::engine
