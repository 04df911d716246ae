#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/experiment.h"

namespace kvscope::engine {

/// Returns the least number of bytes that the runs need in addition to the weights, for the prompt that needs most: the
/// full cache, the compressed caches (only the largest for isolated runs), the question, the answer if it cannot end
/// early, and the recorded window attention. Temporary memory of policies and caches on a card are not included.
uint64_t least_bytes(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                     const ExperimentOptions& options);

/// Checks that the memory for least_bytes() is available, including the weights if the model is not loaded yet.
/// @param remedy advice for the user, such as "use a shorter prompt, fewer policies and budgets"
/// @throws RunError with numbers if it is not
void require_memory(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                    const ExperimentOptions& options, std::string remedy);

/// Checks that at least one run besides full is possible, if there are any.
/// @param obstacles for each run, why it is impossible; empty if it is possible. The first element is for full.
/// @throws UsageError with all obstacles
void require_possible_run(const Prompt& prompt, std::span<const RunPlan> plans, std::span<const std::string> obstacles);

/// Checks the same before anything is read.
void require_possible_run(const Model& model, const Prompt& prompt, std::span<const RunPlan> plans);

}  // namespace kvscope::engine
