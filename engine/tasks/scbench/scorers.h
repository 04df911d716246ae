#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/json.h"
#include "engine/tasks/api/task.h"

namespace kvscope::engine::scbench {

/// Answers to one question, as a metric compares them.
struct Labels {
    std::vector<std::string> texts{};
    nlohmann::json number{};  ///< of the metric math_find: a whole number, or a number with decimals
};

/// Returns the scorer with the rules that compute_scores.py has under this name: kv_retrieval, string_match_all,
/// longdialogue_qa_eng, longbook_qa_chn, longbook_choice_eng, math_find, longbook_sum_eng or passkey.
[[nodiscard]] Scorer scorer_named(std::string_view metric, Labels labels, std::string scored_as);

}  // namespace kvscope::engine::scbench
