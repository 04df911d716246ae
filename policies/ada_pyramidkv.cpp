#include "policies/interface/adaptive_policy.h"
#include "policies/interface/pyramid_budgets.h"

namespace kvscope::policies {

namespace {

class AdaPyramidKv : public AdaptivePolicy {
 public:
    explicit AdaPyramidKv(const ParameterValues& values)
        : AdaptivePolicy(values), beta_(values.real("beta")), reference_(values.text("schedule") == "reference") {}

 protected:
    std::vector<int64_t> layer_budgets(int64_t c) const override {
        return pyramid_budgets(context().shape.n_layers, c, n_prefix(), beta_, reference_);
    }

 private:
    double beta_;
    bool reference_;
};

}  // namespace

Definition ada_pyramidkv_definition() {
    return {
        .name = "ada-pyramidkv",
        .title = "Ada-PyramidKV",
        .paper =
            "Feng et al., Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM "
            "Inference, 2024, arXiv:2407.11550",
        .summary = "PyramidKV's budgets between layers, and Ada-KV's joint allocation among the heads of each.",
        .parameters = snapkv_family_parameters(
            {beta_parameter(), schedule_parameter(), alpha_parameter(0.2), normalize_parameter()}),
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<AdaPyramidKv>(values);
        },
    };
}

}  // namespace kvscope::policies
