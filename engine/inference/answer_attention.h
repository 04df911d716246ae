#pragma once

#include <cstdint>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/inference/compare.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Attention of the full cache's own answer, summed over the queries of its decode steps (all its tokens but the last,
/// which is never read back; the only one where there is one alone), at the first n_context prompt tokens: (L, H, N).
/// The softmax runs over all keys visible to a query. DapQ's M_gold is the best B of a KV head's mean.
/// @param full the full cache, which holds the answer's tokens, too
std::vector<float> answer_attention(const Transformer& model, const RunCache& full, const FullReference& answer,
                                    int64_t n_context);

/// (L, H, N) as (L, G, N): the mean over each KV head's query heads.
std::vector<float> mean_over_groups(const std::vector<float>& attention, const policies::ModelShape& shape,
                                    int64_t n_tokens);

}  // namespace kvscope::engine
