#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::analysis {

/// Returns an order of n heads in which similar heads are adjacent: the leaves of average-linkage clustering (UPGMA).
/// Of equally distant clusters, those with the lowest heads join first, at the two ends that are closest to each other.
/// Heads with a NaN divergence come last, in ascending order.
/// @param divergence (n, n), symmetric; only the upper triangle is read
/// @throws std::invalid_argument if the matrix is not (n, n)
std::vector<size_t> head_order(std::span<const float> divergence, size_t n);

}  // namespace kvscope::analysis
