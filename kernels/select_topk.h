#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace kvscope::kernels {

/// A score that cannot be ranked.
class NanScore : public std::runtime_error {
 public:
    NanScore(int64_t row, int64_t position);
    int64_t row;
    int64_t position;
};

/// The first NaN among n values, or -1.
int64_t find_nan(const float* values, int64_t n);
int64_t find_nan(const double* values, int64_t n);

/// Indices of the k largest of n scores, ascending, into indices (k). Of equal scores the lower index is taken; -0 and
/// +0 are equal. O(n) for any input.
/// @throws NanScore for a NaN anywhere among the n; std::invalid_argument unless 0 <= k <= n.
void select_topk(const float* scores, int64_t n, int64_t k, uint32_t* indices);
void select_topk(const double* scores, int64_t n, int64_t k, uint32_t* indices);

/// How many of the k largest scores of all rows together fall into each row: counts (n_rows). Row i's n scores start at
/// scores + i * row_stride. Of equal scores the lower row is taken, then the lower position.
/// @throws as select_topk, with 0 <= k <= n_rows * n.
void count_topk_by_row(const float* scores, int64_t n_rows, int64_t n, int64_t row_stride, int64_t k, int64_t* counts);
void count_topk_by_row(const double* scores, int64_t n_rows, int64_t n, int64_t row_stride, int64_t k, int64_t* counts);

}  // namespace kvscope::kernels
