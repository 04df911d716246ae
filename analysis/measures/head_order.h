#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::analysis {

/// An order of n heads in which similar ones stand together: the leaves of average-linkage clustering (UPGMA) of a
/// symmetric matrix of divergences (n, n), of which the upper triangle is read. Of equal distances the clusters with
/// the lowest heads join first; two clusters are joined by the ends that are nearest to each other. Heads whose
/// divergence from another is NaN come last, ascending.
/// @throws std::invalid_argument when the matrix is not (n, n).
std::vector<size_t> head_order(std::span<const float> divergence, size_t n);

}  // namespace kvscope::analysis
