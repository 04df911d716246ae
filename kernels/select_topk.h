#pragma once

#include <cstdint>
#include <stdexcept>

namespace kvscope::kernels {

struct NanScore : std::runtime_error {
    NanScore(int64_t row, int64_t position);
    int64_t row;
    int64_t position;
};

/// Returns the position of the first NaN among n values, or -1.
[[nodiscard]] int64_t find_nan(const float* values, int64_t n);
[[nodiscard]] int64_t find_nan(const double* values, int64_t n);

/// Writes the indices of the k largest of n scores to `indices` (k), ascending. Ties go to the lower index; -0 equals
/// +0. Throws NanScore if any score is NaN, std::invalid_argument unless 0 <= k <= n.
void select_topk(const float* scores, int64_t n, int64_t k, uint32_t* indices);
void select_topk(const double* scores, int64_t n, int64_t k, uint32_t* indices);

/// Counts how many of the k largest scores of all rows are in each row, into counts (n_rows). Ties go to the lower row,
/// then to the lower position. Throws like select_topk(), but k may be up to n_rows * n.
void count_topk_by_row(const float* scores, int64_t n_rows, int64_t n, int64_t row_stride, int64_t k, int64_t* counts);
void count_topk_by_row(const double* scores, int64_t n_rows, int64_t n, int64_t row_stride, int64_t k, int64_t* counts);

}  // namespace kvscope::kernels
