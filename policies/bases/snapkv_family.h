#pragma once

#include <cstdint>
#include <vector>

#include "policies/bases/window_policy.h"

namespace kvscope::policies {

/// SnapKV and its variants. They rank the prefix by the window's mean attention, reduced to rows and then pooled.
class SnapKvFamily : public WindowPolicy, public Gathers {
 public:
    explicit SnapKvFamily(const ParameterValues& values);

    void gather(LayerObservations& observations) override;
    [[nodiscard]] Selection select(LayerObservations& observations) override;
    [[nodiscard]] Selection select_from_scores(int layer, LayerScores scores) override;

 protected:
    [[nodiscard]] HeadRows window_attention(LayerObservations& observations) const;

    [[nodiscard]] Selection select_pooled(int layer, Scores<float> scores);

    /// Reduces and pools a mean attention (H, N). Returns scores (R, N) with NaN after the prefix.
    [[nodiscard]] Scores<float> pooled(int layer, const HeadRows& attention) const;

    [[nodiscard]] virtual Scores<float> finished(int /*layer*/, Scores<float> scores) const { return scores; }
    [[nodiscard]] virtual bool leaves_scores() const { return true; }

    /// Returns each row's number of prefix entries. Their sum over the model must equal that of layer_budgets().
    [[nodiscard]] virtual std::vector<int64_t> head_budgets(int layer, const Scores<float>& scores) const;

 private:
    std::shared_ptr<const Scores<float>> shared_scores(LayerObservations& observations) const;

    float lambda_;
    kernels::HeadReduction reduction_;
    kernels::Pooling pooling_;
    int64_t kernel_;
};

[[nodiscard]] std::vector<Parameter> snapkv_family_parameters(std::vector<Parameter> own = {});

}  // namespace kvscope::policies
