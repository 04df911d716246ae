#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/reduce_heads.h"
#include "kernels/score_pooling.h"
#include "policies/api/policy.h"

namespace kvscope::policies {

[[nodiscard]] int n_rows(const ModelShape& shape, Granularity granularity);

/// Converts query heads' scores `in` (H, columns) to rows. The row of a KV head combines the scores of its query heads.
template <class Out>
[[nodiscard]] std::vector<Out> reduce_scores_by_head(const ModelShape& shape, Granularity granularity,
                                                     kernels::HeadReduction reduction, const float* in,
                                                     int64_t columns);

/// Reads rows that are `in.stride` numbers apart, and multiplies each score by `factor`.
template <class Out>
[[nodiscard]] std::vector<Out> reduce_scores_by_head(const ModelShape& shape, Granularity granularity,
                                                     kernels::HeadReduction reduction, const HeadRows& in,
                                                     int64_t columns, float factor = 1.0f);

/// Returns (R, n_tokens) scores, all NaN.
template <class Score>
[[nodiscard]] std::vector<Score> make_nan_scores(int rows, int64_t n_tokens);

/// Returns scores (R, n_tokens). Each row has the pooled first n_prefix values of a row of `in`, then NaN.
[[nodiscard]] std::vector<float> pooled_prefix(kernels::Pooling pooling, int64_t kernel, const std::vector<float>& in,
                                               int rows, int64_t n_prefix, int64_t n_tokens);

/// @throws ScoreError if scores (R, n_tokens) have a wrong size, or a NaN in the first n_prefix columns
template <class Score>
void require_valid_scores(int layer, const Scores<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens);
template <class Score>
void require_valid_scores(int layer, const std::vector<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens);

/// Returns ascending positions for each row: the `counts[row]` best of the first n_prefix, and all later positions.
template <class Score>
[[nodiscard]] std::vector<std::vector<uint32_t>> best_and_tail(const Scores<Score>& scores,
                                                               std::span<const int64_t> counts, int64_t n_prefix,
                                                               int64_t n_tokens);

/// Ranks the first n_prefix scores of all rows together. Returns how many of the `count` best scores are in each row.
template <class Score>
[[nodiscard]] std::vector<int64_t> count_best_by_row(const Scores<Score>& scores, int rows, int64_t n_prefix,
                                                     int64_t n_tokens, int64_t count);

}  // namespace kvscope::policies
