#pragma once

#include <span>
#include <vector>

namespace kvscope::policies {

/// Adds X^T X of rows X (n, width) to the lower triangle of `sums` (width, width).
void accumulate_gram_matrix(std::span<const float> rows, int width, std::vector<double>& sums);

struct Directions {
    std::vector<double> eigenvalues;  ///< in descending order
    std::vector<float> vectors;       ///< (rank, n) orthonormal, row by row
};

/// Returns the leading eigenvectors of a symmetric matrix (n, n). @throws ScoreError if a number is not finite
[[nodiscard]] Directions leading_eigenvectors(std::span<const double> matrix, int n, int rank);

}  // namespace kvscope::policies
