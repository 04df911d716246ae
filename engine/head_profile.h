#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/model.h"

namespace kvscope::engine {

/// HeadKV's two measures of a head (methods.md): R counts the copying of needle tokens, R2 the attention to them.
enum class HeadMeasure { retrieval, reasoning };

struct HeadProfileOptions {
    HeadMeasure measure = HeadMeasure::reasoning;
    std::vector<int64_t> lengths{500, 1000, 2000};
    std::vector<double> depths{0.1, 0.3, 0.5, 0.7, 0.9};
    int n_seeds = 2;            ///< prompts for each length and depth
    int64_t n_new = 50;         ///< tokens to answer with at most
    std::string haystack;       ///< text of the haystack; empty: RULER's noise
    bool use_template = true;   ///< the model's own chat template, where it has one
    bool parse_special = true;  ///< as PromptOptions has it
};

struct HeadProfile {
    int n_prompts = 0;
    int n_right = 0;  ///< counted prompts: those that were answered right
    /// (L, H) lists of one score a counted prompt; a head's importance is the mean.
    std::vector<std::vector<double>> scores;
};

/// Measures how much each query head has to do with finding a needle, by greedy answers of the full cache. A prompt
/// counts where the answer is right: it has the number, and ROUGE-1 recall (retrieval) or F1 (reasoning) of its words
/// against the number, or the sentence that says it, is above 0.5.
/// At each decode step a head gains, for R: 1 / n where the token it attends to most lies in the needle of n tokens and
/// is the one generated; for R2: attention / n for each of its n most attended tokens that lies in the needle.
/// @throws UsageError where no prompt fits in the context; RunError where none was answered right; Cancelled.
HeadProfile profile_heads(const Model& model, const HeadProfileOptions& options, Progress& progress);

/// The published form: {"layer-head": [score, …], …}.
std::string to_json(const HeadProfile& profile, const policies::ModelShape& shape);

}  // namespace kvscope::engine
