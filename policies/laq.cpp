#include "policies/bases/lookahead_policy.h"

namespace kvscope::policies {

namespace {

class Laq : public LookaheadPolicy {
 public:
    using LookaheadPolicy::LookaheadPolicy;

 protected:
    Scores<float> scores_of(LayerObservations& observations) const override {
        return pooled(observations.layer, observations.appended_attention());
    }
};

}  // namespace

Definition laq_definition() {
    return lookahead_q_cache_definition<Laq>(
        "laq", "LAQ",
        "Generates a few tokens from a cache that is compressed as in SnapKV. The queries of these tokens then rank "
        "the entries of the full cache for the final compression.");
}

}  // namespace kvscope::policies
