#include "policies/interface/lookahead_policy.h"

namespace kvscope::policies {

namespace {

class LaqPlusPlus : public LookaheadPolicy {
 public:
    using LookaheadPolicy::LookaheadPolicy;

    Selection select(LayerObservations& observations) override {
        std::vector<float> mean = observations.appended_attention();
        const std::vector<float>& of_window = window_attention(observations);
        const auto w = static_cast<float>(std::min<int64_t>(window(), n_tokens()));
        const float n = static_cast<float>(observations.n_appended()) + w;
        for (size_t i = 0; i < mean.size(); ++i) mean[i] = (mean[i] + of_window[i] * w) / n;
        return select_by_attention(observations.layer, mean);
    }
};

}  // namespace

Definition laq_plus_plus_definition() {
    return lookahead_q_cache_definition<LaqPlusPlus>(
        "laq++", "LAQ++", "LAQ that ranks by the window's queries together with those of the tokens looked ahead.");
}

}  // namespace kvscope::policies
