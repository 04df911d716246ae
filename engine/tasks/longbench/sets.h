#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tasks/api/task.h"
#include "engine/tasks/longbench/word_cuts.h"

namespace kvscope::engine::longbench {

enum class PromptStyle {
    chat,      ///< with chat template
    examples,  ///< without chat template; only the first line of a prediction counts
    code,      ///< without chat template
};

/// Whose rules decide which line of a prediction is the first one. kvpress omits all white space before this line,
/// LongBench only line feeds.
enum class ScoredAs { upstream, kvpress };

/// What a score needs besides prediction and answer.
struct ScoreInputs {
    std::vector<std::string> classes{};      ///< of sets with has_classes()
    std::shared_ptr<const WordCuts> cuts{};  ///< for sets with needs_cuts()
    ScoredAs scored_as = ScoredAs::upstream;
};

/// One of LongBench's sets.
struct Set {
    std::string_view name;
    PromptStyle style;
    int64_t n_new;  ///< largest number of answer tokens (dataset2maxlen.json)
    std::string_view metric;
    double (*score)(std::string_view prediction, std::string_view answer, const ScoreInputs& inputs);
    std::string_view format;  ///< prompt with {context} and {input} (dataset2prompt.json)

    [[nodiscard]] bool has_classes() const { return metric == "classification_score"; }
    [[nodiscard]] bool needs_cuts() const { return metric.ends_with("f1_zh_score") || metric == "rouge_zh_score"; }
    [[nodiscard]] bool ends_at_line_feed() const { return name == "samsum"; }
    /// Returns the scorer of a sample: the best score over all answers.
    [[nodiscard]] Scorer scorer(ScoreInputs inputs) const;
};

[[nodiscard]] std::span<const Set> sets();

/// @param name such as "qasper" @param place for messages @throws UsageError for an unknown set
[[nodiscard]] const Set& set_named(std::string_view name, const std::string& place);

}  // namespace kvscope::engine::longbench
