#pragma once

#include <string>
#include <vector>

#include "policies/bases/scoring_policy.h"

namespace kvscope::policies {

/// Base of policies that rank entries by attention summed over all prompt queries, such as H2O. Reads `reduce`.
class AttentionSumPolicy : public ScoringPolicy {
 public:
    explicit AttentionSumPolicy(const ParameterValues& values);

    [[nodiscard]] Needs needs() const override;

 protected:
    [[nodiscard]] std::vector<float> score(LayerObservations& observations) override;
    [[nodiscard]] std::string shared_as() const override;

    [[nodiscard]] kernels::HeadReduction reduction() const { return reduction_; }

 private:
    kernels::HeadReduction reduction_;
};

}  // namespace kvscope::policies
