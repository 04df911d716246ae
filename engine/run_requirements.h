#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/experiment.h"

namespace kvscope::engine {

/// Bytes that the runs need at least beside the weights: of the prompt that takes most, the full cache, what the runs
/// keep of it (of isolated ones the largest), the question behind them, the answer where it cannot end early, and what
/// a trace holds of the window. What policies compute on the way comes on top. On a card caches do not count.
uint64_t least_bytes(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                     const ExperimentOptions& options);

/// @param remedy what a person can do who has these options: "use a shorter prompt, fewer policies and budgets"
/// @throws RunError with numbers where least_bytes(), with the weights of a model that is not loaded yet, are more than
///         are free
void require_memory(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                    const ExperimentOptions& options, std::string remedy);

/// @param obstacles why each run cannot be, empty where it can; the full one's first
/// @throws UsageError with all of them where there are others than the full one and none of them can be
void require_possible_run(const Prompt& prompt, std::span<const RunPlan> plans, std::span<const std::string> obstacles);

/// The same of what is known before anything is read.
void require_possible_run(const Model& model, const Prompt& prompt, std::span<const RunPlan> plans);

}  // namespace kvscope::engine
