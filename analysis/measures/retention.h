#pragma once

#include <cstdint>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// (L, N): how many rows (heads) of a layer keep each token, 0 ... R (K-VEC's Figure 4).
std::vector<uint16_t> retention_counts(const KeptSets& kept);

/// (N): how many layers keep each token in at least one row, 0 ... L (K-VEC's Figure 3).
std::vector<uint16_t> layer_counts(const KeptSets& kept);

/// (N): how many rows of all layers keep each token, 0 ... L R.
std::vector<uint16_t> head_counts(const KeptSets& kept);

}  // namespace kvscope::analysis
