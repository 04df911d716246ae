#pragma once

#include <cstddef>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// Number of prompt tokens, and their share of all N (0 for an empty prompt).
struct Coverage {
    size_t count = 0;
    double share = 0;
};

/// Counts the prompt tokens that at least one row of at least one layer keeps.
Coverage model_coverage(const KeptSets& kept);

/// (L) Counts the prompt tokens that at least one row of the layer keeps.
std::vector<Coverage> layer_coverage(const KeptSets& kept);

/// (L, R) Counts the tokens that one row keeps.
std::vector<Coverage> head_coverage(const KeptSets& kept);

}  // namespace kvscope::analysis
