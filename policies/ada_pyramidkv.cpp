#include "policies/bases/adaptive_policy.h"
#include "policies/bases/pyramid_policy.h"

namespace kvscope::policies {

Definition ada_pyramidkv_definition() {
    return {
        .name = "ada-pyramidkv",
        .title = "Ada-PyramidKV",
        .paper =
            "Feng et al., Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM "
            "Inference, 2024, arXiv:2407.11550",
        .summary =
            "Uses PyramidKV's budget for each layer. As in Ada-KV, each layer keeps the entries with the best scores "
            "over all of its heads.",
        .parameters = snapkv_family_parameters(
            {beta_parameter(), schedule_parameter(), alpha_parameter(0.2), normalize_parameter()}),
        .create = make_policy<PyramidPolicy<AdaptivePolicy>>,
    };
}

}  // namespace kvscope::policies
