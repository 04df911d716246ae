#pragma once

#include <cstdint>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/inference/compare.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Returns the attention of the full run's answer to the first n_context prompt tokens, (L, H, N), summed over the
/// answer's tokens that are read back. The softmax runs over all keys that a query sees. The B largest means of a KV
/// head are DapQ's M_gold.
std::vector<float> answer_attention(const Transformer& model, const RunCache& full, const FullReference& answer,
                                    int64_t n_context);

/// Returns (L, H, N) averaged over the query heads of each KV head, (L, G, N).
std::vector<float> mean_over_groups(const std::vector<float>& attention, const policies::ModelShape& shape,
                                    int64_t n_tokens);

}  // namespace kvscope::engine
