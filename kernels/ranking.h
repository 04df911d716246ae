#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/select_topk.h"

namespace kvscope::kernels {

/// Rows of scores in their order, from which the largest ones of any number are read off: as `select_topk` and
/// `count_topk_by_row` find them, where these look through all scores for each number anew.
template <class Score>
class Ranking {
 public:
    /// Sorts each row of scores (n_rows, n), which have to stay as they are for as long as the ranking is there. A NaN
    /// stands behind all numbers.
    Ranking(const Score* scores, int64_t n_rows, int64_t n);

    int64_t n_rows() const { return n_rows_; }
    int64_t n() const { return n_; }

    /// The first NaN among a row's first n_prefix scores, or -1.
    int64_t find_nan(int64_t row, int64_t n_prefix) const;

    /// select_topk of a row's first n_prefix scores. @throws as that
    void select(int64_t row, int64_t n_prefix, int64_t k, uint32_t* indices) const;

    /// count_topk_by_row of all rows' first n_prefix scores, where those behind are NaN. @throws as that
    void count(int64_t n_prefix, int64_t k, int64_t* counts) const;

    /// Whether each row has numbers in its first n_prefix places and nowhere else.
    bool ends_at(int64_t n_prefix) const;

 private:
    const uint32_t* order(int64_t row) const { return order_.data() + row * n_; }

    const Score* scores_;
    int64_t n_rows_;
    int64_t n_;
    std::vector<uint32_t> order_;     ///< (n_rows, n) indices from the largest score on, of equal ones the lower first
    std::vector<int64_t> n_numbers_;  ///< (n_rows) that are no NaN
};

extern template class Ranking<float>;
extern template class Ranking<double>;

}  // namespace kvscope::kernels
