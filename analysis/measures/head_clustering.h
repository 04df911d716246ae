#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::analysis {

/// Orders heads so that similar heads are adjacent: the leaves of average-linkage clustering (UPGMA). Heads with a NaN
/// divergence come last.
/// @param divergence (n, n), symmetric; only the upper triangle is read
/// @throws std::invalid_argument if the matrix is not (n, n)
[[nodiscard]] std::vector<size_t> order_heads_by_similarity(std::span<const float> divergence, size_t n);

}  // namespace kvscope::analysis
