#pragma once

#include <vector>

#include "policies/interface/adaptive_budgets.h"
#include "policies/interface/snapkv_family.h"

namespace kvscope::policies {

/// Ada-KV with SnapKV's scores. Each layer keeps the best entries of all heads. `alpha` reserves entries per head.
class AdaptivePolicy : public SnapKvFamily {
 public:
    explicit AdaptivePolicy(const ParameterValues& values)
        : SnapKvFamily(values), alpha_(values.real("alpha")), normalize_(values.boolean("normalize")) {}

 protected:
    [[nodiscard]] bool leaves_scores() const override { return !normalize_; }
    [[nodiscard]] Scores<float> finished(int layer, Scores<float> scores) const override {
        if (!normalize_) return scores;
        std::vector<float> weighed = scores.vector();
        weigh_by_concentration(weighed.data(), rows(), n_prefix(), n_tokens(), layer_budget(layer));
        return weighed;
    }

    [[nodiscard]] std::vector<int64_t> head_budgets(int layer, const Scores<float>& scores) const override {
        return adaptive_budgets(scores, rows(), n_prefix(), n_tokens(), layer_budget(layer), alpha_);
    }

 private:
    double alpha_;
    bool normalize_;
};

[[nodiscard]] inline Parameter normalize_parameter() {
    Parameter parameter = boolean_parameter(
        "normalize", false,
        "Whether each head's scores are first multiplied by a factor: the sum of the head's c largest scores "
        "divided by the sum of all its scores.");
    parameter.binds_scores_to_budget = true;
    return parameter;
}

}  // namespace kvscope::policies
