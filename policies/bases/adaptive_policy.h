#pragma once

#include <vector>

#include "policies/bases/snapkv_family.h"

namespace kvscope::policies {

/// Counts how many of the layer's R c best scores are in each row, and applies with_safeguard() to these counts.
[[nodiscard]] std::vector<int64_t> adaptive_budgets(const Scores<float>& scores, int rows, int64_t n_prefix,
                                                    int64_t n_tokens, int64_t c, double alpha);

/// Returns n_h (1 - alpha) + alpha c for each count n_h in `counts`. Rounding to integers preserves the sum R c.
[[nodiscard]] std::vector<int64_t> with_safeguard(std::vector<int64_t> counts, int64_t c, double alpha);

/// Multiplies each row's first n_prefix scores by the sum of the c largest of these scores, divided by the sum of all.
/// A row without a positive score stays unchanged.
void weigh_by_concentration(float* scores, int rows, int64_t n_prefix, int64_t row_stride, int64_t c);

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
