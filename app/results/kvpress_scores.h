#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tasks/api/task.h"

namespace kvscope::results {

/// Key of metrics.json, which kvpress lacks: a list with metric, scored_as and score of each prediction, for data sets
/// whose scores cannot be computed from the predictions.
inline constexpr const char* scores_of_samples = "kvscope_scores";

/// Returns the scorer of kvpress's evaluation, or of kvscope's task `jsonl`, which has only one. Returns nullopt for
/// other data sets, whose scores depend on their sets and on options such as --score-as, and for sets of LongBench that
/// need files (Chinese).
/// @param dataset such as "ruler" @param task of the sample, such as "niah_single_1"
/// @param classes of the sample, for classification in LongBench
[[nodiscard]] std::optional<engine::Scorer> scorer_of_kvpress(std::string_view dataset, std::string_view task,
                                                              const std::vector<std::string>& classes);

}  // namespace kvscope::results
