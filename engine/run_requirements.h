#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/experiment.h"

namespace kvscope::engine {

/// Returns how many bytes of the processor's memory the largest prompt needs at least, in addition to the weights.
/// Counts caches, question, recorded window attention, and the answer if it cannot end early.
[[nodiscard]] uint64_t least_memory_bytes(const Model& model, std::span<const Prompt> prompts,
                                          std::span<const RunPlan> plans, const ExperimentOptions& options);

/// Checks that the memory suffices for least_memory_bytes() and for weights that are not yet loaded.
/// @param remedy advice for the user, such as "use a shorter prompt, fewer policies and budgets"
/// @throws RunError with the required and the available bytes if the memory is too small
void require_memory(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                    const ExperimentOptions& options, std::string remedy);

/// @throws UsageError with all obstacles if there are plans besides full and none of them can run
/// @param obstacles why each run is impossible; an empty text for a possible run
void require_any_possible_run(const Prompt& prompt, std::span<const RunPlan> plans,
                              std::span<const std::string> obstacles);

/// Checks the budgets before the policies are created.
void require_any_possible_run(const Model& model, const Prompt& prompt, std::span<const RunPlan> plans);

}  // namespace kvscope::engine
