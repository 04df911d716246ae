#pragma once

#include <cstddef>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// A number of prompt tokens and its share of N (0 for an empty prompt).
struct Coverage {
    size_t count = 0;
    double share = 0;
};

/// Unique prompt tokens that at least one row of at least one layer keeps.
Coverage model_coverage(const KeptSets& kept);

/// (L): unique prompt tokens that at least one row of the layer keeps.
std::vector<Coverage> layer_coverage(const KeptSets& kept);

/// (L, R): tokens that one row keeps.
std::vector<Coverage> head_coverage(const KeptSets& kept);

}  // namespace kvscope::analysis
