#include "policies/methods/gram_eigenvectors.h"

#include <Eigen/Eigenvalues>
#include <stdexcept>

#include "policies/api/policy_errors.h"

namespace kvscope::policies {

void accumulate_gram_matrix(std::span<const float> rows, int width, std::vector<double>& sums) {
    const auto n = static_cast<size_t>(width);
    if (n == 0 || rows.size() % n != 0 || sums.size() != n * n)
        throw std::logic_error("the rows and the sums have different widths");
    std::vector<double> row(n);
    for (size_t first = 0; first < rows.size(); first += n) {
        for (size_t i = 0; i < n; ++i) row[i] = double{rows[first + i]};
        for (size_t i = 0; i < n; ++i) {
            const double factor = row[i];
            double* of_row = sums.data() + i * n;
            for (size_t j = 0; j <= i; ++j) of_row[j] += factor * row[j];
        }
    }
}

Directions leading_eigenvectors(std::span<const double> matrix, int n, int rank) {
    using MatrixD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    if (rank < 1 || rank > n || matrix.size() != static_cast<size_t>(n) * static_cast<size_t>(n))
        throw std::logic_error("the rank or the size of the matrix is invalid");
    const Eigen::Map<const MatrixD> whole(matrix.data(), n, n);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(whole);
    if (solver.info() != Eigen::Success || !solver.eigenvalues().allFinite())
        throw ScoreError("the leading directions cannot be computed: some numbers are not finite");
    Directions directions;
    directions.eigenvalues.reserve(static_cast<size_t>(rank));
    directions.vectors.reserve(static_cast<size_t>(rank) * static_cast<size_t>(n));
    for (int i = n - 1; i >= n - rank; --i) {
        directions.eigenvalues.push_back(solver.eigenvalues()[i]);
        for (int row = 0; row < n; ++row)
            directions.vectors.push_back(static_cast<float>(solver.eigenvectors()(row, i)));
    }
    return directions;
}

}  // namespace kvscope::policies
