#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/inference/tail_pass.h"

namespace kvscope::engine {

/// What pseudo tokens are beside the answer that they stand for, and where they stand (DapQ, Table 1 and Figure 2).
struct PseudoTokens {
    enum class Content {
        answer,      ///< the answer's own tokens (SC)
        phrase,      ///< a phrase over and over (DC)
        vocabulary,  ///< drawn from the whole vocabulary (DC)
    };
    Content content = Content::answer;
    int64_t start = 0;  ///< position of the first of them; the number of prompt tokens is where the answer is (SP)
    int64_t drawn_below = 0;  ///< above 0: `start` is drawn, so that all positions are below this
};

/// What tails are made from.
struct PseudoSource {
    std::span<const int32_t> answer;
    std::span<const int32_t> phrase;
    int64_t n_vocabulary = 0;
    uint64_t seed = 0;
};

/// n tails of as many tokens as the answer has, at consecutive positions; each with draws of its own, the same ones for
/// a seed.
/// @throws UsageError for an empty phrase where it is used
std::vector<Tail> tails_of(const PseudoTokens& tokens, const PseudoSource& source, int n);

}  // namespace kvscope::engine
