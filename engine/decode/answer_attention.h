#pragma once

#include <cstdint>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/decode/compare.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Returns the attention from the full run's answer to the first n_context tokens, (L, H, N), summed over the answer's
/// tokens. The last token, which the model never reads, counts only if the answer has no other token. Each softmax
/// covers all keys that a query sees. DapQ's M_gold are the tokens with the B largest group means.
[[nodiscard]] std::vector<float> answer_attention(const Transformer& model, const RunCache& full,
                                                  const FullReference& answer, int64_t n_context);

/// Averages attention (L, H, N) over the query heads of each KV head. Returns (L, G, N).
[[nodiscard]] std::vector<float> mean_over_groups(const std::vector<float>& attention,
                                                  const policies::ModelShape& shape, int64_t n_tokens);

}  // namespace kvscope::engine
