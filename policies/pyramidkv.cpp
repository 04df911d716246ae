#include "policies/interface/pyramid_policy.h"

namespace kvscope::policies {

Definition pyramidkv_definition() {
    return {
        .name = "pyramidkv",
        .title = "PyramidKV",
        .paper =
            "Cai et al., PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling, 2024, "
            "arXiv:2406.02069",
        .summary =
            "Ranks the prefix as SnapKV does. The layers' budgets decrease linearly from the first to the last layer. "
            "The total is the same as with equal budgets.",
        .parameters = snapkv_family_parameters({beta_parameter(), schedule_parameter()}),
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<PyramidPolicy<SnapKvFamily>>(values);
        },
    };
}

}  // namespace kvscope::policies
