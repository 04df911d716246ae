#include "policies/interface/policy.h"

#include <algorithm>
#include <stdexcept>

namespace kvscope::policies {

double RunContext::share_of_bytes() const {
    if (budget_share) return std::min(*budget_share, 1.0);
    return n_tokens > 0 ? std::min(static_cast<double>(budget) / static_cast<double>(n_tokens), 1.0) : 1.0;
}

Selection Policy::draft(LayerObservations&) { throw std::logic_error("this policy has no lookahead"); }

Merges Policy::merge(const MergeObservations&, int64_t) {
    throw std::logic_error("this policy does not merge entries");
}

StoredLayer Policy::store(const ReducedTokens&) {
    throw std::logic_error("this policy stores no parts during decoding");
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): overriding functions change the scores
Selection Policy::select_from_scores(int, LayerScores) {
    throw std::logic_error("this policy cannot decide from scores alone");
}

}  // namespace kvscope::policies
