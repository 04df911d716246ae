#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/inference/compare.h"
#include "trace/records.h"

namespace kvscope::engine {

/// A run that is compared with full.
struct ComparedRun {
    /// @param record holds the kept entries of the prompt
    /// @param kl step_kl of the run; must outlive this object
    ComparedRun(const trace::RunRecord& record, std::span<const float> kl, int n_layers);

    std::span<const float> step_kl;  ///< (T) divergence from full
    trace::Kept kept;                ///< prompt entries in the run's cache; R divides H
};

/// Returns for each run (L, N), in nats: how much of its KL falls on prompt tokens that it dropped. For each decode
/// step, the step's KL is multiplied by the full run's attention weight at a prompt token, in the query heads whose row
/// does not hold the token. The weight is that of the query from which the step's token is drawn, with a softmax over
/// all keys that the query sees. The products are summed over the steps and averaged over the query heads. Step 0 is
/// left out: its query belongs to the prompt. The numbers of a run do not depend on the other runs.
/// @param full holds the prompt's first n_context tokens
/// @param answer must contain `keys_behind`
/// @returns one vector for each run; empty if a step's KL is not finite
/// @throws Cancelled
std::vector<std::vector<float>> kl_attention_lost(const Transformer& model, const RunCache& full,
                                                  const FullReference& answer, int64_t n_context,
                                                  std::span<const ComparedRun> runs, Progress& progress);

/// Returns the keys of a layer's entries from `first` on, (G, n - first, d).
at::Tensor keys_from(const Transformer& model, const RunCache& cache, int layer, int64_t first);

}  // namespace kvscope::engine
