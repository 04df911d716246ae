#pragma once

#include <cstdint>
#include <vector>

#include "policies/interface/window_policy.h"

namespace kvscope::policies {

/// SnapKV and what grew out of it: the prefix is ranked by the window's mean attention, reduced over the group and
/// pooled. As it stands this class is SnapKV; others replace the shares of layers (WindowPolicy::layer_budgets) or of
/// heads.
class SnapKvFamily : public WindowPolicy {
 public:
    explicit SnapKvFamily(const ParameterValues& values);

    bool gathers() const override { return true; }
    void gather(LayerObservations& observations) override;
    Selection select(LayerObservations& observations) override;
    Selection select_from_scores(int layer, LayerScores scores) override;

 protected:
    /// (H, N): mean attention of the window's queries, diversified where lambda says so.
    HeadRows window_attention(LayerObservations& observations) const;

    /// The decision by scores that `pooled` has made.
    Selection select_pooled(int layer, Scores<float> scores);

    /// Some mean attention (H, N), reduced and pooled: (R, N), NaN behind the prefix.
    Scores<float> pooled(int layer, const HeadRows& attention) const;

    /// What becomes of pooled scores (R, N), NaN behind the prefix, before they are ranked.
    virtual Scores<float> finished(int /*layer*/, Scores<float> scores) const { return scores; }
    /// Whether those are the same scores.
    virtual bool leaves_scores() const { return true; }

    /// Entries of the prefix that each row keeps in a layer; over all layers their sum has to be that of R *
    /// layer_budget(layer).
    virtual std::vector<int64_t> head_budgets(int layer, const Scores<float>& scores) const;

 private:
    std::shared_ptr<const Scores<float>> shared_scores(LayerObservations& observations) const;

    float lambda_;
    kernels::HeadReduction reduction_;
    kernels::Pooling pooling_;
    int64_t kernel_;
};

/// window, pooling, kernel, reduce, lambda, then the policy's own, then granularity and positions.
std::vector<Parameter> snapkv_family_parameters(std::vector<Parameter> own = {});

}  // namespace kvscope::policies
