#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tasks/api/task.h"

namespace kvscope::results {

/// Returns the scorer of kvpress's evaluation, or for another data set the scorer of kvscope's task of this name.
/// Returns nullopt if the data set has none, or needs files (Chinese sets of LongBench).
/// @param dataset such as "ruler" @param task of the sample, such as "niah_single_1"
/// @param classes of the sample, for classification in LongBench
[[nodiscard]] std::optional<engine::Scorer> scorer_of_kvpress(std::string_view dataset, std::string_view task,
                                                              const std::vector<std::string>& classes);

}  // namespace kvscope::results
