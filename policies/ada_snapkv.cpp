#include "policies/interface/adaptive_policy.h"

namespace kvscope::policies {

Definition ada_snapkv_definition() {
    return {
        .name = "ada-snapkv",
        .title = "Ada-SnapKV",
        .paper =
            "Feng et al., Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM "
            "Inference, 2024, arXiv:2407.11550",
        .summary =
            "Ranks the prefix as SnapKV does. Each layer keeps the entries with the best scores over all of its heads. "
            "The parameter `alpha` reserves part of the budget for each head.",
        .parameters = snapkv_family_parameters({alpha_parameter(0.2), normalize_parameter()}),
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<AdaptivePolicy>(values);
        },
    };
}

}  // namespace kvscope::policies
