#include <algorithm>
#include <vector>

#include "kernels/threads/parallel.h"
#include "policies/bases/lookahead_policy.h"

namespace kvscope::policies {

namespace {

class LaqPlusPlus : public LookaheadPolicy {
 public:
    using LookaheadPolicy::LookaheadPolicy;

 protected:
    Scores<float> scores_of(LayerObservations& observations) const override {
        const HeadRows of_appended = observations.appended_attention(), of_window = window_attention(observations);
        const auto a = static_cast<float>(observations.n_appended()),
                   w = static_cast<float>(std::min<int64_t>(window(), n_tokens()));
        const int64_t n = n_tokens();
        std::vector<float> mean(static_cast<size_t>(context().shape.n_heads * n));
        kernels::parallel_for(context().shape.n_heads, 2 * static_cast<int64_t>(mean.size()), [&](int64_t head) {
            const float *appended = of_appended.data + head * of_appended.stride,
                        *window = of_window.data + head * of_window.stride;
            float* of_head = mean.data() + head * n;
            for (int64_t j = 0; j < n; ++j) of_head[j] = (appended[j] * a + window[j] * w) / (a + w);
        });
        return pooled(observations.layer, {mean.data(), n});
    }
};

}  // namespace

Definition laq_plus_plus_definition() {
    return lookahead_q_cache_definition<LaqPlusPlus>("laq++", "LAQ++",
                                                     "Works like LAQ, but ranks the entries of the full cache by the "
                                                     "queries of both the window and the generated tokens.");
}

}  // namespace kvscope::policies
