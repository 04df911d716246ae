#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/pool.h"
#include "kernels/reduce_heads.h"
#include "policies/interface/policy.h"

namespace kvscope::policies {

/// Returns the number of rows: G or H.
int n_rows(const ModelShape& shape, Granularity granularity);

/// Returns one row of scores per KV head (reduced over its query heads) or per query head. `in` is (H, columns).
template <class Out>
std::vector<Out> scores_by_row(const ModelShape& shape, Granularity granularity, kernels::HeadReduction reduction,
                               const float* in, int64_t columns);

/// Like the above, for rows with a stride. Multiplies each number by `factor`.
template <class Out>
std::vector<Out> scores_by_row(const ModelShape& shape, Granularity granularity, kernels::HeadReduction reduction,
                               const HeadRows& in, int64_t columns, float factor = 1.0f);

/// Returns (R, n_tokens) of NaN, to be filled with scores of a prefix.
template <class Score>
std::vector<Score> no_scores(int rows, int64_t n_tokens);

/// Pools the first n_prefix values of each row of `in`. Returns (R, n_tokens) with NaN after the prefix.
std::vector<float> pooled_prefix(kernels::Pooling pooling, int64_t kernel, const std::vector<float>& in, int rows,
                                 int64_t n_prefix, int64_t n_tokens);

/// @throws ScoreError for a wrong size, or a NaN among the first n_prefix columns of scores (R, n_tokens).
template <class Score>
void require_scores(int layer, const Scores<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens);
template <class Score>
void require_scores(int layer, const std::vector<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens);

/// Returns, for each row, the `counts[row]` best of the first n_prefix positions and all later ones, ascending.
template <class Score>
std::vector<std::vector<uint32_t>> best_and_tail(const Scores<Score>& scores, std::span<const int64_t> counts,
                                                 int64_t n_prefix, int64_t n_tokens);

/// Returns how many of the `count` best scores over all rows, among the first n_prefix of each, fall in each row.
template <class Score>
std::vector<int64_t> best_by_row(const Scores<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens,
                                 int64_t count);

}  // namespace kvscope::policies
