#pragma once

#include <cstdint>
#include <vector>

#include "policies/interface/window_policy.h"

namespace kvscope::policies {

/// SnapKV and its variants. The prefix is ranked by the window's mean attention, reduced over the group and pooled.
/// This class is SnapKV itself; variants override layer_budgets() or head_budgets().
class SnapKvFamily : public WindowPolicy {
 public:
    explicit SnapKvFamily(const ParameterValues& values);

    bool gathers() const override { return true; }
    void gather(LayerObservations& observations) override;
    Selection select(LayerObservations& observations) override;
    Selection select_from_scores(int layer, LayerScores scores) override;

 protected:
    /// Returns the mean attention (H, N) of the window's queries, with query diversification if lambda > 0.
    HeadRows window_attention(LayerObservations& observations) const;

    /// Selects entries by scores from pooled().
    Selection select_pooled(int layer, Scores<float> scores);

    /// Reduces and pools a mean attention (H, N). Returns (R, N) with NaN after the prefix.
    Scores<float> pooled(int layer, const HeadRows& attention) const;

    /// Changes pooled scores (R, N) before they are ranked.
    virtual Scores<float> finished(int /*layer*/, Scores<float> scores) const { return scores; }
    /// Whether finished() returns the scores unchanged.
    virtual bool leaves_scores() const { return true; }

    /// Returns the prefix entries that each row keeps in a layer. The sum over all layers must be that of R *
    /// layer_budget(layer).
    virtual std::vector<int64_t> head_budgets(int layer, const Scores<float>& scores) const;

 private:
    std::shared_ptr<const Scores<float>> shared_scores(LayerObservations& observations) const;

    float lambda_;
    kernels::HeadReduction reduction_;
    kernels::Pooling pooling_;
    int64_t kernel_;
};

/// Returns window, pooling, kernel, reduce and lambda, then the policy's own parameters, then granularity and
/// positions.
std::vector<Parameter> snapkv_family_parameters(std::vector<Parameter> own = {});

}  // namespace kvscope::policies
