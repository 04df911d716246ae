#pragma once

#include <string>
#include <vector>

#include "policies/interface/scoring_policy.h"

namespace kvscope::policies {

/// Base of policies that rank entries by attention summed over all prompt queries, such as H2O. Reads `reduce`.
class AttentionSumPolicy : public ScoringPolicy {
 public:
    explicit AttentionSumPolicy(const ParameterValues& values);

    Needs needs() const override;

 protected:
    std::vector<float> score(LayerObservations& observations) override;
    std::string shared_as() const override;

    kernels::HeadReduction reduction() const { return reduction_; }

 private:
    kernels::HeadReduction reduction_;
};

}  // namespace kvscope::policies
