#include "policies/api/policy.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "policies/api/further_interfaces.h"

namespace kvscope::policies {

double RunContext::share_of_bytes() const {
    if (budget_share) return std::min(*budget_share, 1.0);
    return n_tokens > 0 ? std::min(static_cast<double>(budget) / static_cast<double>(n_tokens), 1.0) : 1.0;
}

Selection select_all_tokens(const RunContext& context) {
    std::vector<uint32_t> all(static_cast<size_t>(context.n_tokens));
    std::iota(all.begin(), all.end(), 0u);
    Selection selection;
    selection.rows.assign(static_cast<size_t>(context.shape.n_kv_heads), all);
    return selection;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): overriding functions change the scores
Selection Policy::select_from_scores(int, LayerScores) {
    throw std::logic_error("this policy cannot decide from scores alone");
}

Selection ReadsThroughOwnCache::select(LayerObservations&) {
    throw std::logic_error("this policy merges entries and does not select them");
}

}  // namespace kvscope::policies
