#pragma once

#include <utility>
#include <vector>

#include "policies/api/definition.h"

namespace kvscope::policies {

/// Tracks the layers for which a policy can decide after each observed layer (DecidesInOrder::decided_at).
class DecidableLayers {
 public:
    /// Returns the range [first, end) of layers for which the policy can decide once `layer` has been observed.
    /// @throws std::logic_error if the layers are not in order or `decided_at` returns an impossible layer
    [[nodiscard]] std::pair<int, int> after(const CreatedPolicy& policy, int layer, int n_layers);

 private:
    std::vector<int> decided_at_;  // results for the observed layers
    int next_ = 0;
};

}  // namespace kvscope::policies
