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

/// Mean cosine of a pseudo token's query and the true query of the same place in the answer, over places, query heads
/// and layers.
struct QuerySimilarity {
    double after_rope = 0;
    double before_rope = 0;
};

/// A prompt and the queries with which the full cache decoded its greedy answer, against which pseudo tokens behind the
/// prompt are held (DapQ, Table 1 and Figure 2). One prefill serves any number of them.
class QueryAlignment {
 public:
    /// Reads the prompt and decodes token by token, at most n_answer tokens, until an end token, which is no part of
    /// the answer: nobody reads it back.
    /// @throws UsageError for n_answer below 1 or a prompt that leaves no room; RunError where the answer is empty;
    ///         Cancelled.
    QueryAlignment(const Transformer& model, std::span<const int32_t> prompt, std::span<const int32_t> end_ids,
                   int64_t n_answer, Progress& progress);

    int64_t n_prompt() const { return n_prompt_; }
    const std::vector<int32_t>& answer() const { return answer_; }

    /// Reads each tail at once behind the prompt, as DapQ does. Queries before RoPE are those that the layer rotates,
    /// not rotated back.
    /// @param tails of as many tokens as the answer has
    /// @returns one for each
    /// @throws UsageError for a tail of another length or a negative position; Cancelled
    std::vector<QuerySimilarity> similarity(std::span<const Tail> tails, Progress& progress);

 private:
    struct Queries {
        at::Tensor plain, rotated;  // (T, H, d) f32
    };

    const Transformer& model_;
    int64_t n_prompt_;
    DenseCache cache_;  // with room for an answer or a tail
    std::vector<int32_t> answer_;
    std::vector<Queries> queries_;  // per layer
};

}  // namespace kvscope::engine
