#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/decode/compare.h"
#include "trace/records/records.h"

namespace kvscope::engine {

struct ComparedRun {
    /// @param kl step_kl of the run; must outlive this object
    ComparedRun(const trace::RunRecord& record, std::span<const float> kl, int n_layers);

    std::span<const float> step_kl;  ///< (T) KL from full
    trace::Kept kept;                ///< prompt entries in the run's cache, with R rows per layer
};

/// Returns, for each run, the divergence that falls on each dropped prompt token, (L, N) in nats. Multiplies the KL of
/// a step by the full run's attention from the query that predicts the step, in heads that dropped the token. Sums over
/// all steps but the first and averages over query heads. A run's result is empty if a step's KL is not finite.
/// @param answer must contain `later_keys`
[[nodiscard]] std::vector<std::vector<float>> attribute_kl_to_dropped_tokens(
    const Transformer& model, const RunCache& full, const FullReference& answer, int64_t n_context,
    std::span<const ComparedRun> runs, Progress& progress);

[[nodiscard]] at::Tensor copy_keys_from_position(const Transformer& model, const RunCache& cache, int layer,
                                                 int64_t first);

}  // namespace kvscope::engine
