#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/pool.h"
#include "kernels/reduce_heads.h"
#include "policies/interface/policy.h"

namespace kvscope::policies {

/// Steps that selecting policies share once their scores stand; rows are KV heads or query heads.

/// Rows that a granularity has: G or H.
int n_rows(const ModelShape& shape, Granularity granularity);

/// Rows of in (H, columns) for a granularity: the group's reduction, or each query head's own.
template <class Out>
std::vector<Out> scores_by_row(const ModelShape& shape, Granularity granularity, kernels::HeadReduction reduction,
                               const float* in, int64_t columns);

/// The same of rows that are part of a wider array, each number `factor` times.
template <class Out>
std::vector<Out> scores_by_row(const ModelShape& shape, Granularity granularity, kernels::HeadReduction reduction,
                               const HeadRows& in, int64_t columns, float factor = 1.0f);

/// (R, n_tokens) of NaN, for scores of a prefix.
template <class Score>
std::vector<Score> no_scores(int rows, int64_t n_tokens);

/// Rows (R, n_tokens) of in, pooled along their first n_prefix values each: (R, n_tokens), NaN behind the prefix.
std::vector<float> pooled_prefix(kernels::Pooling pooling, int64_t kernel, const std::vector<float>& in, int rows,
                                 int64_t n_prefix, int64_t n_tokens);

/// A NaN among the first n_prefix columns of scores (R, n_tokens), or a wrong size, as a ScoreError that names the
/// layer.
template <class Score>
void require_scores(int layer, const Scores<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens);
template <class Score>
void require_scores(int layer, const std::vector<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens);

/// Per row the positions of its `counts[row]` best scores among the first n_prefix of (R, n_tokens), and all positions
/// from n_prefix on; ascending.
template <class Score>
std::vector<std::vector<uint32_t>> best_and_tail(const Scores<Score>& scores, std::span<const int64_t> counts,
                                                 int64_t n_prefix, int64_t n_tokens);

/// How many of the `count` best scores of all rows of (R, n_tokens) together, of the first n_prefix each, are in each
/// row.
template <class Score>
std::vector<int64_t> best_by_row(const Scores<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens,
                                 int64_t count);

}  // namespace kvscope::policies
