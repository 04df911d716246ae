#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/common/progress.h"
#include "engine/model/transformer.h"
#include "engine/prefill/pseudo_token_pass.h"

namespace kvscope::engine {

/// Tokens that replace the answer, and their positions (DapQ, Table 1 and Figure 2).
struct PseudoTokens {
    enum class Content {
        answer,      ///< the answer's own tokens (SC)
        phrase,      ///< a repeated phrase (DC)
        vocabulary,  ///< random tokens of the vocabulary (DC)
    };
    Content content = Content::answer;
    int64_t start = 0;        ///< position of the first token; N for the answer's own positions (SP)
    int64_t drawn_below = 0;  ///< if above 0, draws `start` at random so that all positions are smaller
};

struct PseudoSource {
    std::span<const int32_t> answer;
    std::span<const int32_t> phrase;
    int64_t n_vocabulary = 0;
    uint64_t seed = 0;
};

/// Draws n tails, each as long as the answer. @throws UsageError if the phrase is needed and empty
[[nodiscard]] std::vector<Tail> draw_pseudo_tokens(const PseudoTokens& tokens, const PseudoSource& source, int n);

/// Mean cosine between the queries of pseudo tokens and of the answer, over tokens, query heads and layers.
struct QuerySimilarity {
    double after_rope = 0;
    double before_rope = 0;
};

/// Compares queries of pseudo tokens with those of the full run's greedy answer (DapQ, Table 1 and Figure 2).
class PseudoQuerySimilarity {
 public:
    /// Reads the prompt and decodes up to n_answer tokens, without the end token.
    /// @throws UsageError if n_answer is below 1 or does not fit in the context; RunError if the answer is empty
    PseudoQuerySimilarity(const Transformer& model, std::span<const int32_t> prompt, std::span<const int32_t> end_ids,
                          int64_t n_answer, Progress& progress);

    [[nodiscard]] int64_t n_prompt() const { return n_prompt_; }
    [[nodiscard]] const std::vector<int32_t>& answer() const { return answer_; }

    /// Returns a result for each tail, which is read after the prompt in one pass as in DapQ.
    /// @throws UsageError if a tail is not as long as the answer or has a negative position
    [[nodiscard]] std::vector<QuerySimilarity> similarity(std::span<const Tail> tails, Progress& progress);

 private:
    struct Queries {
        at::Tensor plain, rotated;  // (T, H, d) f32
    };

    const Transformer& model_;
    int64_t n_prompt_;
    DenseCache cache_;  // with free entries for an answer or a tail
    std::vector<int32_t> answer_;
    std::vector<Queries> queries_;
};

}  // namespace kvscope::engine
