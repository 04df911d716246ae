#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tasks/api/task.h"

namespace kvscope::engine::longbench {

enum class PromptStyle {
    chat,      ///< with chat template
    examples,  ///< without chat template; only the first line of a prediction counts
    code,      ///< without chat template
};

/// Whose rules decide which line of a prediction is the first one. kvpress omits all white space before this line,
/// LongBench only line feeds.
enum class ScoredAs { upstream, kvpress };

/// One of LongBench's sets that kvscope scores.
struct Set {
    std::string_view name;
    PromptStyle style;
    int64_t n_new;  ///< largest number of answer tokens (dataset2maxlen.json)
    std::string_view metric;
    double (*score)(std::string_view prediction, std::string_view answer, std::span<const std::string> classes);
    std::string_view format;  ///< prompt with {context} and {input} (dataset2prompt.json)

    [[nodiscard]] bool has_classes() const { return metric == "classification_score"; }
    [[nodiscard]] bool ends_at_line_feed() const { return name == "samsum"; }
    /// Returns the scorer of a sample: the best score over all answers.
    [[nodiscard]] Scorer scorer(std::vector<std::string> classes, ScoredAs scored_as = ScoredAs::upstream) const;
};

[[nodiscard]] std::span<const Set> sets();

/// @param name such as "qasper" @throws UsageError for unknown sets, and for those whose scores need Chinese word cuts
[[nodiscard]] const Set& set_named(std::string_view name, const std::string& place);

}  // namespace kvscope::engine::longbench
