#pragma once

#include <cstdint>

namespace kvscope::kernels {

/// Divergences between all pairs of rows p_i of distributions (n_rows, n), out (n_rows, n_rows), natural logarithms,
/// f64 throughout. 0 log 0 = 0; values below the smallest normal number (2.2e-308) count as 0. The rows have to be
/// non-negative and to sum to 1; a row with a NaN has NaN in its row and column. The
/// result does not depend on the number of threads.

/// out[i][j] = JSD(p_i || p_j) = (KL(p_i || m) + KL(p_j || m)) / 2, m = (p_i + p_j) / 2. Symmetric, zero diagonal,
/// within [0, ln 2]. Exact also for rows that are nearly alike: small differences are summed by their series and not as
/// differences of entropies.
void jsd_matrix(const double* distributions, int64_t n_rows, int64_t n, double* out);

/// out[i][j] = KL(p_i || p_j) >= 0. Where p_j is 0 and p_i is not, p_j counts as the smallest normal number, so that
/// the result is large and not infinite.
void kl_matrix(const double* distributions, int64_t n_rows, int64_t n, double* out);

/// out[i][j] = -sum p_i ln p_j, zeros as in kl_matrix; the diagonal is the entropy.
void cross_entropy_matrix(const double* distributions, int64_t n_rows, int64_t n, double* out);

/// jsd_matrix of weights (n_rows, n) with row_stride between rows, each row divided by its sum first. A row without any
/// weight, or with a NaN, is no distribution: NaN in its row and column.
void jsd_matrix_of_weights(const float* weights, int64_t n_rows, int64_t n, int64_t row_stride, float* out);

}  // namespace kvscope::kernels
