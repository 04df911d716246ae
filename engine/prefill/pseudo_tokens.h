#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace kvscope::engine
