#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/inference/compare.h"
#include "trace/records.h"

namespace kvscope::engine {

/// A run beside the full one.
struct ComparedRun {
    /// @param record whose kept entries are those of the prompt. @param kl has to outlive it
    ComparedRun(const trace::RunRecord& record, std::span<const float> kl, int n_layers);

    std::span<const float> step_kl;  ///< (T) how far it is from the full one
    trace::Kept kept;                ///< what its cache holds of the prompt; R divides H
};

/// Of each run (L, N), in nats: the KL of each decode step times the share of the full cache's attention, of the query
/// that the step's token is drawn from, which falls on a prompt token in the heads that hold nothing of it; summed over
/// the steps, mean over the query heads. The softmax runs over all keys visible to the query. Step 0, whose query is
/// the prompt's own, has no part. A run's numbers depend on no other run.
/// @param full holds the prompt's first n_context tokens
/// @param answer with `keys_behind`
/// @returns for each of `runs`; an empty one where a step's KL is not finite
/// @throws Cancelled
std::vector<std::vector<float>> kl_attention_lost(const Transformer& model, const RunCache& full,
                                                  const FullReference& answer, int64_t n_context,
                                                  std::span<const ComparedRun> runs, Progress& progress);

/// Of a layer of a cache, (G, n - first, d): the keys of its entries from `first` on.
at::Tensor keys_from(const Transformer& model, const RunCache& cache, int layer, int64_t first);

}  // namespace kvscope::engine
