#include "engine/prefill/pseudo_tokens.h"

#include <algorithm>

#include "engine/common/engine_error.h"
#include "policies/methods/seeded_random.h"

namespace kvscope::engine {

std::vector<Tail> draw_pseudo_tokens(const PseudoTokens& tokens, const PseudoSource& source, int n) {
    using Content = PseudoTokens::Content;
    if (tokens.content == Content::phrase && source.phrase.empty())
        throw UsageError("the phrase that pseudo tokens repeat is empty: give some text");
    policies::SeededRandom random(source.seed);
    const auto length = static_cast<int64_t>(source.answer.size());
    std::vector<Tail> tails(static_cast<size_t>(n));
    for (Tail& tail : tails) {
        const int64_t start =
            tokens.drawn_below > 0 ? random.below(std::max<int64_t>(tokens.drawn_below - length, 0) + 1) : tokens.start;
        for (int64_t i = 0; i < length; ++i) {
            const auto place = static_cast<size_t>(i);
            tail.ids.push_back(tokens.content == Content::answer ? source.answer[place]
                               : tokens.content == Content::phrase
                                   ? source.phrase[place % source.phrase.size()]
                                   : static_cast<int32_t>(random.below(source.n_vocabulary)));
            tail.positions.push_back(start + i);
        }
    }
    return tails;
}

}  // namespace kvscope::engine
