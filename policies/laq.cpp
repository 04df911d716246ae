#include <algorithm>

#include "policies/interface/lookahead_policy.h"

namespace kvscope::policies {

namespace {

class Laq : public LookaheadPolicy {
 public:
    using LookaheadPolicy::LookaheadPolicy;

    Selection select(LayerObservations& observations) override {
        std::vector<float> mean = observations.appended_attention();
        const auto n = static_cast<float>(observations.n_appended());
        std::transform(mean.begin(), mean.end(), mean.begin(), [n](float sum) { return sum / n; });
        return select_by_attention(observations.layer, mean);
    }
};

}  // namespace

Definition laq_definition() {
    return lookahead_q_cache_definition<Laq>(
        "laq", "LAQ",
        "Generates a few tokens from a cache compressed as SnapKV does, ranks the full cache by their queries, and "
        "compresses again.");
}

}  // namespace kvscope::policies
