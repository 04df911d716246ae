#pragma once

#include <cstdint>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/inference/compare.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Returns the attention that the full run's own answer pays to the first n_context prompt tokens, (L, H, N). Weights
/// are summed over the decode steps: all answer tokens but the last, which is never read back, or the only token of an
/// answer of one. The softmax runs over all keys that a query sees.
/// DapQ's M_gold is the B tokens with the largest mean of a KV head.
/// @param full the full cache, with the answer's tokens
std::vector<float> answer_attention(const Transformer& model, const RunCache& full, const FullReference& answer,
                                    int64_t n_context);

/// Returns (L, H, N) averaged over the query heads of each KV head, (L, G, N).
std::vector<float> mean_over_groups(const std::vector<float>& attention, const policies::ModelShape& shape,
                                    int64_t n_tokens);

}  // namespace kvscope::engine
