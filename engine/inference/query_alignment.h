#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/common/progress.h"
#include "engine/inference/tail_pass.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Mean cosine of a pseudo token's query with the query of the answer's token at the same index, averaged over tokens,
/// query heads and layers.
struct QuerySimilarity {
    double after_rope = 0;
    double before_rope = 0;
};

/// Compares the queries of pseudo tokens after a prompt with those of the full run's greedy answer (DapQ, Table 1 and
/// Figure 2). One prefill serves any number of comparisons.
class QueryAlignment {
 public:
    /// Reads the prompt and decodes up to n_answer tokens. The answer ends before an end token, which is never read
    /// back.
    /// @throws UsageError if n_answer is below 1 or does not fit in the context; RunError if the answer is empty;
    /// Cancelled
    QueryAlignment(const Transformer& model, std::span<const int32_t> prompt, std::span<const int32_t> end_ids,
                   int64_t n_answer, Progress& progress);

    int64_t n_prompt() const { return n_prompt_; }
    const std::vector<int32_t>& answer() const { return answer_; }

    /// Reads each tail in one pass after the prompt, as DapQ does. Queries before RoPE are taken before the layer
    /// rotates them.
    /// @param tails each as long as the answer
    /// @returns one result for each tail
    /// @throws UsageError for a tail of another length or a negative position; Cancelled
    std::vector<QuerySimilarity> similarity(std::span<const Tail> tails, Progress& progress);

 private:
    struct Queries {
        at::Tensor plain, rotated;  // (T, H, d) f32
    };

    const Transformer& model_;
    int64_t n_prompt_;
    DenseCache cache_;  // with free entries for an answer or a tail
    std::vector<int32_t> answer_;
    std::vector<Queries> queries_;  // one per layer
};

}  // namespace kvscope::engine
