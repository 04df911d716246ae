#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/experiment.h"

namespace kvscope::engine {

/// Returns the least number of bytes that the runs need besides the weights, for the prompt that needs most: caches,
/// question, answer if it cannot end early, and recorded window attention. Caches on a card are not included.
uint64_t least_bytes(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                     const ExperimentOptions& options);

/// Checks that the memory for least_bytes(), and for weights that are not loaded, is available.
/// @param remedy advice for the user, such as "use a shorter prompt, fewer policies and budgets"
/// @throws RunError with numbers if it is not
void require_memory(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                    const ExperimentOptions& options, std::string remedy);

/// Checks that at least one run besides full is possible, if there are any. @throws UsageError with all obstacles
/// @param obstacles why each run is impossible; empty if it is possible
void require_possible_run(const Prompt& prompt, std::span<const RunPlan> plans, std::span<const std::string> obstacles);

/// Checks the same before the policies are created.
void require_possible_run(const Model& model, const Prompt& prompt, std::span<const RunPlan> plans);

}  // namespace kvscope::engine
