#include "policies/interface/selection.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "kernels/select_topk.h"

namespace kvscope::policies {

int n_rows(const ModelShape& shape, Granularity granularity) {
    return granularity == Granularity::query_head ? shape.n_heads : shape.n_kv_heads;
}

template <class Out>
std::vector<Out> scores_by_row(const ModelShape& shape, Granularity granularity, kernels::HeadReduction reduction,
                               const float* in, int64_t columns) {
    const int rows = n_rows(shape, granularity);
    std::vector<Out> out(static_cast<size_t>(rows * columns));
    kernels::reduce_heads(reduction, in, columns, rows, shape.n_heads / rows, columns, out.data(), columns);
    return out;
}

template <class Score>
std::vector<Score> padded_with_nan(const std::vector<Score>& prefix_scores, int rows, int64_t n_prefix,
                                   int64_t n_tokens) {
    std::vector<Score> scores(static_cast<size_t>(rows * n_tokens), std::numeric_limits<Score>::quiet_NaN());
    for (int row = 0; row < rows; ++row) {
        std::copy_n(prefix_scores.begin() + row * n_prefix, n_prefix, scores.begin() + row * n_tokens);
    }
    return scores;
}

template <class Score>
void require_scores(int layer, const std::vector<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens) {
    const std::string where = "layer " + std::to_string(layer);
    if (static_cast<int64_t>(scores.size()) != rows * n_tokens) {
        throw ScoreError(where + ": expected " + std::to_string(rows) + " x " + std::to_string(n_tokens) +
                         " scores, found " + std::to_string(scores.size()));
    }
    for (int row = 0; row < rows; ++row) {
        const int64_t position = kernels::find_nan(scores.data() + row * n_tokens, n_prefix);
        if (position < 0) continue;
        throw ScoreError(where + ", head " + std::to_string(row) + ": the score of position " +
                         std::to_string(position) + " is not a number, so that nothing can be ranked");
    }
}

template <class Score>
std::vector<std::vector<uint32_t>> best_and_tail(const std::vector<Score>& scores, std::span<const int64_t> counts,
                                                 int64_t n_prefix, int64_t n_tokens) {
    std::vector<std::vector<uint32_t>> rows(counts.size());
    for (size_t row = 0; row < rows.size(); ++row) {
        const int64_t count = counts[row];
        rows[row].resize(static_cast<size_t>(count + n_tokens - n_prefix));
        kernels::select_topk(scores.data() + static_cast<int64_t>(row) * n_tokens, n_prefix, count, rows[row].data());
        std::iota(rows[row].begin() + count, rows[row].end(), static_cast<uint32_t>(n_prefix));
    }
    return rows;
}

template std::vector<float> scores_by_row(const ModelShape&, Granularity, kernels::HeadReduction, const float*,
                                          int64_t);
template std::vector<double> scores_by_row(const ModelShape&, Granularity, kernels::HeadReduction, const float*,
                                           int64_t);
template std::vector<float> padded_with_nan(const std::vector<float>&, int, int64_t, int64_t);
template std::vector<double> padded_with_nan(const std::vector<double>&, int, int64_t, int64_t);
template void require_scores(int, const std::vector<float>&, int, int64_t, int64_t);
template void require_scores(int, const std::vector<double>&, int, int64_t, int64_t);
template std::vector<std::vector<uint32_t>> best_and_tail(const std::vector<float>&, std::span<const int64_t>, int64_t,
                                                          int64_t);
template std::vector<std::vector<uint32_t>> best_and_tail(const std::vector<double>&, std::span<const int64_t>, int64_t,
                                                          int64_t);

}  // namespace kvscope::policies
