#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tasks/api/record.h"
#include "engine/tasks/infinitebench/scorers.h"
#include "engine/tasks/longbench/middle_cut.h"

namespace kvscope::engine::infinitebench {

/// One of InfiniteBench's sets.
struct Set {
    std::string_view name;
    int64_t n_new;            ///< largest number of answer tokens (eval_utils.py)
    std::string_view metric;  ///< ends in "_score" if an answer can be partly right
    double (*score)(std::string_view prediction, Answers answers);
    double (*score_as_kvpress)(std::string_view prediction, Answers answers);
    std::string_view before;  ///< the context, and
    std::string_view after;   ///< after the context: templates for `yarn-mistral` and others (prompt.py)

    /// Returns the prompt of a record. @throws UsageError for missing and unusable fields
    [[nodiscard]] longbench::TwoPartPrompt prompt_of(const Record& record) const;
    /// Returns the record's answers as texts; of a set with choices, the right choice and its letter.
    /// @throws UsageError if there are none
    [[nodiscard]] std::vector<std::string> answers_of(const Record& record) const;
    /// Whether the answer is a part of the context.
    [[nodiscard]] bool is_retrieval() const;
    [[nodiscard]] bool has_choices() const;
    [[nodiscard]] Scorer scorer(bool as_kvpress) const;
};

[[nodiscard]] std::span<const Set> sets();
[[nodiscard]] std::vector<std::string_view> names_of_sets();

}  // namespace kvscope::engine::infinitebench
