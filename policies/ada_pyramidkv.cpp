#include "policies/interface/adaptive_policy.h"
#include "policies/interface/pyramid_policy.h"

namespace kvscope::policies {

Definition ada_pyramidkv_definition() {
    return {
        .name = "ada-pyramidkv",
        .title = "Ada-PyramidKV",
        .paper =
            "Feng et al., Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM "
            "Inference, 2024, arXiv:2407.11550",
        .summary =
            "Uses PyramidKV's budgets per layer. Within a layer, the slots go to the best scores over all of its "
            "heads, as in Ada-KV.",
        .parameters = snapkv_family_parameters(
            {beta_parameter(), schedule_parameter(), alpha_parameter(0.2), normalize_parameter()}),
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<PyramidPolicy<AdaptivePolicy>>(values);
        },
    };
}

}  // namespace kvscope::policies
