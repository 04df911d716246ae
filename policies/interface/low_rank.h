#pragma once

#include <span>
#include <vector>

namespace kvscope::policies {

/// Adds X^T X of rows X (n, width) to the lower triangle (i, j), j <= i, of `sums` (width, width).
/// @throws std::logic_error if the sizes do not match
void add_products(std::span<const float> rows, int width, std::vector<double>& sums);

/// Leading eigenvectors of a symmetric matrix.
struct Directions {
    std::vector<double> eigenvalues;  ///< descending
    std::vector<float> vectors;       ///< (rank, n) orthonormal, row by row
};

/// Returns the eigenvectors of the `rank` largest eigenvalues of a matrix (n, n). Only the lower triangle is read.
/// @throws ScoreError if a number is not finite; std::logic_error if the rank is not 1 to n
Directions leading_directions(std::span<const double> matrix, int n, int rank);

}  // namespace kvscope::policies
