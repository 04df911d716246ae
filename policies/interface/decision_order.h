#pragma once

#include <utility>
#include <vector>

#include "policies/interface/policy.h"

namespace kvscope::policies {

/// Tracks which layers can be decided after each observed layer (Policy::decided_at).
class DecisionOrder {
 public:
    /// Returns the layers [first, end) that can be decided after `layer` was observed. Layers must be passed in order
    /// from 0.
    /// @throws std::logic_error if `decided_at` returns an impossible layer
    std::pair<int, int> after(const Policy& policy, int layer, int n_layers);

 private:
    std::vector<int> decided_at_;  // results for the observed layers
    int next_ = 0;
};

}  // namespace kvscope::policies
