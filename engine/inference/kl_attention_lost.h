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
    /// @param kl step_kl of the run; must outlive this object
    ComparedRun(const trace::RunRecord& record, std::span<const float> kl, int n_layers);

    std::span<const float> step_kl;  ///< (T) divergence from full
    trace::Kept kept;                ///< prompt entries in the run's cache; R divides H
};

/// Returns for each run (L, N), in nats, how much of its divergence falls on dropped prompt tokens. Each step's KL is
/// multiplied by the full run's attention to a token, from the query that predicts the step, in heads that dropped the
/// token. Products are summed over all steps but the first and averaged over query heads.
/// @param answer must contain `keys_behind`
/// @returns one vector for each run; empty if a step's KL is not finite
std::vector<std::vector<float>> kl_attention_lost(const Transformer& model, const RunCache& full,
                                                  const FullReference& answer, int64_t n_context,
                                                  std::span<const ComparedRun> runs, Progress& progress);

/// Returns the keys of a layer's entries from `first` on, (G, n - first, d).
at::Tensor keys_from(const Transformer& model, const RunCache& cache, int layer, int64_t first);

}  // namespace kvscope::engine
