#pragma once

#include <cstddef>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// Number of kept prompt tokens, and their share of the prompt's tokens. The share of an empty prompt is 0.
struct Coverage {
    size_t count = 0;
    double share = 0;
};

/// Counts the prompt tokens that at least one head of any layer keeps.
[[nodiscard]] Coverage model_coverage(const KeptSets& kept);

/// Counts the prompt tokens that at least one head of each layer keeps (L).
[[nodiscard]] std::vector<Coverage> layer_coverage(const KeptSets& kept);

/// Counts the tokens that each row keeps (L, R).
[[nodiscard]] std::vector<Coverage> token_coverage_of_heads(const KeptSets& kept);

}  // namespace kvscope::analysis
