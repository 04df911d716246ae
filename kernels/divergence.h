#pragma once

#include <cstdint>

namespace kvscope::kernels {

// Each function compares all pairs of rows of `distributions` (n_rows, n) in f64 and fills out (n_rows, n_rows). Rows
// must be non-negative with sum 1. 0 log 0 = 0, and values below the smallest normal number (2.2e-308) count as 0. A
// row with NaN makes its row and column of `out` NaN. The result does not depend on the number of threads.

/// out[i][j] = JSD(p_i || p_j) = (KL(p_i || m) + KL(p_j || m)) / 2, m = (p_i + p_j) / 2, in [0, ln 2].
void jsd_matrix(const double* distributions, int64_t n_rows, int64_t n, double* out);

/// out[i][j] = KL(p_i || p_j) >= 0. Results are finite: where only p_j is 0, p_j counts as the smallest normal number.
void kl_matrix(const double* distributions, int64_t n_rows, int64_t n, double* out);

/// out[i][j] = -sum p_i ln p_j, with zeros treated as in kl_matrix(). The diagonal contains the entropies.
void cross_entropy_matrix(const double* distributions, int64_t n_rows, int64_t n, double* out);

/// Like jsd_matrix(), after dividing each row of weights (n_rows, n) by its sum. Rows with sum 0 or NaN give NaN.
void jsd_matrix_of_weights(const float* weights, int64_t n_rows, int64_t n, int64_t row_stride, float* out);

}  // namespace kvscope::kernels
