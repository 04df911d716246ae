#pragma once

#include <span>
#include <vector>

namespace kvscope::policies {

/// Adds X^T X of rows X (n, width) to the lower triangle of `sums` (width, width): element (i, j), j <= i.
/// @throws std::logic_error for rows that do not fit
void add_products(std::span<const float> rows, int width, std::vector<double>& sums);

/// Some eigenvectors of a symmetric matrix.
struct Directions {
    std::vector<double> eigenvalues;  ///< descending
    std::vector<float> vectors;       ///< (rank, n) orthonormal, row after row
};

/// Those of the `rank` largest eigenvalues of a matrix (n, n) of which the lower triangle is read.
/// @throws ScoreError where not all of it are finite numbers; std::logic_error for a rank that is not 1 to n
Directions leading_directions(std::span<const double> matrix, int n, int rank);

}  // namespace kvscope::policies
