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
    return {
        .name = "laq",
        .title = "LAQ",
        .paper =
            "Wang et al., Lookahead Q-Cache: Achieving More Consistent KV Cache Eviction via Pseudo Query, EMNLP 2025, "
            "arXiv:2505.20334",
        .summary =
            "Generates a few tokens from a cache compressed as SnapKV does, ranks the full cache by their queries, and "
            "compresses again.",
        .parameters = snapkv_family_parameters({lookahead_parameter()}),
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<Laq>(values);
        },
        .scores_follow_budget = true,
    };
}

}  // namespace kvscope::policies
