#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tasks/api/task.h"

namespace kvscope::engine::helmet {

/// Returns the rest of the line after the first `prefix`, in any case, or the first line: parse_output() of utils.py.
[[nodiscard]] std::string parsed_output(std::string_view output, std::string_view prefix);

/// Names of the metrics of texts: the best over all answers, and over the prediction and its parsed_output().
[[nodiscard]] std::span<const std::string_view> text_metrics();

/// @param metric one of text_metrics() @param begin text of the prompt that counts as part of the prediction
/// @param prefix for parsed_output()
[[nodiscard]] Scorer text_scorer(std::string_view metric, std::string begin, std::string prefix);

/// Share of the answers that the prediction contains, without case. @param begin see text_scorer()
[[nodiscard]] Scorer ruler_recall(std::string begin);

/// Returns the IDs in the order in which the prediction ranks them: parse_rankings() of utils.py.
[[nodiscard]] std::vector<std::string> ranked_ids(std::string_view prediction);

/// NDCG of the first ten ranked IDs, with five decimals. @param labels relevance of each ID @param begin see
/// text_scorer()
[[nodiscard]] Scorer ndcg_at_10(std::vector<std::pair<std::string, int64_t>> labels, std::string begin);

}  // namespace kvscope::engine::helmet
