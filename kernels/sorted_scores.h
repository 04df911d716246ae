#pragma once

#include <cstdint>
#include <vector>

#include "kernels/select_topk.h"

namespace kvscope::kernels {

/// Rows of scores, sorted once, for select_topk() and count_topk_by_row() with many values of k.
template <class Score>
class SortedScores {
 public:
    /// Sorts each row of scores (n_rows, n), NaN last. The scores must stay unchanged during the ranking's lifetime.
    SortedScores(const Score* scores, int64_t n_rows, int64_t n);

    [[nodiscard]] int64_t n_rows() const { return n_rows_; }
    [[nodiscard]] int64_t n() const { return n_; }

    [[nodiscard]] int64_t find_nan(int64_t row, int64_t n_prefix) const;

    /// Like select_topk() on a row's first n_prefix scores.
    void select(int64_t row, int64_t n_prefix, int64_t k, uint32_t* indices) const;

    /// Like count_topk_by_row() on the first n_prefix scores of all rows. All later scores must be NaN.
    void count(int64_t n_prefix, int64_t k, int64_t* counts) const;

    /// Whether in each row exactly the first n_prefix scores are numbers.
    [[nodiscard]] bool ends_at(int64_t n_prefix) const;

 private:
    [[nodiscard]] const uint32_t* order(int64_t row) const { return order_.data() + row * n_; }

    const Score* scores_;
    int64_t n_rows_;
    int64_t n_;
    std::vector<uint32_t> order_;     ///< (n_rows, n) indices by descending score, ties by ascending index
    std::vector<int64_t> n_numbers_;  ///< (n_rows) count of scores that are not NaN
};

extern template class SortedScores<float>;
extern template class SortedScores<double>;

}  // namespace kvscope::kernels
