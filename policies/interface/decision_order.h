#pragma once

#include <utility>
#include <vector>

#include "policies/interface/policy.h"

namespace kvscope::policies {

/// Which layers a policy decides when: it observes one after the other, and decides some of them later.
class DecisionOrder {
 public:
    /// After the policy has observed a layer: those that it decides now, [first, end).
    /// @param layer the next one, from 0 on
    /// @throws std::logic_error where `decided_at` is before the layer itself or what it says of an earlier one, or
    ///         behind the last layer
    std::pair<int, int> after(const Policy& policy, int layer, int n_layers);

 private:
    std::vector<int> decided_at_;  // of the layers so far
    int next_ = 0;
};

}  // namespace kvscope::policies
