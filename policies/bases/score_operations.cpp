#include "policies/bases/score_operations.h"

#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "kernels/select_topk.h"
#include "kernels/threads/parallel.h"

namespace kvscope::policies {

int n_rows(const ModelShape& shape, Granularity granularity) {
    return granularity == Granularity::query_head ? shape.n_heads : shape.n_kv_heads;
}

template <class Out>
std::vector<Out> reduce_scores_by_head(const ModelShape& shape, Granularity granularity,
                                       kernels::HeadReduction reduction, const HeadRows& in, int64_t columns,
                                       float factor) {
    const int rows = n_rows(shape, granularity);
    std::vector<Out> out(static_cast<size_t>(rows * columns));
    kernels::reduce_heads(reduction, in.data, in.stride, rows, shape.n_heads / rows, columns, out.data(), columns,
                          factor);
    return out;
}

template <class Out>
std::vector<Out> reduce_scores_by_head(const ModelShape& shape, Granularity granularity,
                                       kernels::HeadReduction reduction, const float* in, int64_t columns) {
    return reduce_scores_by_head<Out>(shape, granularity, reduction, HeadRows{in, columns}, columns);
}

template <class Score>
std::vector<Score> make_nan_scores(int rows, int64_t n_tokens) {
    return std::vector<Score>(static_cast<size_t>(rows * n_tokens), std::numeric_limits<Score>::quiet_NaN());
}

std::vector<float> pooled_prefix(kernels::Pooling pooling, int64_t kernel, const std::vector<float>& in, int rows,
                                 int64_t n_prefix, int64_t n_tokens) {
    std::vector<float> scores = make_nan_scores<float>(rows, n_tokens);
    kernels::parallel_for(rows, rows * n_prefix, [&](int64_t row) {
        kernels::pool(pooling, in.data() + row * n_tokens, n_prefix, kernel, scores.data() + row * n_tokens);
    });
    return scores;
}

namespace {

void require_ranked(int layer, size_t found, int rows, int64_t n_tokens,
                    const std::function<int64_t(int64_t row)>& first_nan) {
    const std::string where = "layer " + std::to_string(layer);
    if (static_cast<int64_t>(found) != rows * n_tokens) {
        throw ScoreError(where + ": expected " + std::to_string(rows) + " x " + std::to_string(n_tokens) +
                         " scores, found " + std::to_string(found));
    }
    for (int row = 0; row < rows; ++row) {
        const int64_t position = first_nan(row);
        if (position < 0) continue;
        throw ScoreError(where + ", head " + std::to_string(row) + ": the score of position " +
                         std::to_string(position) + " is NaN, so the entries cannot be ranked");
    }
}

}  // namespace

template <class Score>
void require_valid_scores(int layer, const std::vector<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens) {
    require_ranked(layer, scores.size(), rows, n_tokens,
                   [&](int64_t row) { return kernels::find_nan(scores.data() + row * n_tokens, n_prefix); });
}

template <class Score>
void require_valid_scores(int layer, const Scores<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens) {
    const auto* ranking = scores.known_ranking(n_tokens);
    if (!ranking) return require_valid_scores(layer, scores.vector(), rows, n_prefix, n_tokens);
    require_ranked(layer, scores.size(), rows, n_tokens, [&](int64_t row) { return ranking->find_nan(row, n_prefix); });
}

template <class Score>
std::vector<std::vector<uint32_t>> best_and_tail(const Scores<Score>& scores, std::span<const int64_t> counts,
                                                 int64_t n_prefix, int64_t n_tokens) {
    std::vector<std::vector<uint32_t>> rows(counts.size());
    const auto n_rows = static_cast<int64_t>(rows.size());
    const auto* ranking = scores.ranking(n_tokens);
    kernels::parallel_for(n_rows, ranking ? 0 : n_rows * n_prefix, [&](int64_t row) {
        auto& places = rows[static_cast<size_t>(row)];
        const int64_t count = counts[static_cast<size_t>(row)];
        places.resize(static_cast<size_t>(count + n_tokens - n_prefix));
        if (ranking)
            ranking->select(row, n_prefix, count, places.data());
        else
            kernels::select_topk(scores.data() + row * n_tokens, n_prefix, count, places.data());
        std::iota(places.begin() + count, places.end(), static_cast<uint32_t>(n_prefix));
    });
    return rows;
}

template <class Score>
std::vector<int64_t> count_best_by_row(const Scores<Score>& scores, int rows, int64_t n_prefix, int64_t n_tokens,
                                       int64_t count) {
    std::vector<int64_t> counts(static_cast<size_t>(rows));
    const auto* ranking = scores.known_ranking(n_tokens);
    if (ranking && ranking->ends_at(n_prefix))
        ranking->count(n_prefix, count, counts.data());
    else
        kernels::count_topk_by_row(scores.data(), rows, n_prefix, n_tokens, count, counts.data());
    return counts;
}

template std::vector<float> reduce_scores_by_head(const ModelShape&, Granularity, kernels::HeadReduction, const float*,
                                                  int64_t);
template std::vector<double> reduce_scores_by_head(const ModelShape&, Granularity, kernels::HeadReduction, const float*,
                                                   int64_t);
template std::vector<float> reduce_scores_by_head(const ModelShape&, Granularity, kernels::HeadReduction,
                                                  const HeadRows&, int64_t, float);
template std::vector<double> reduce_scores_by_head(const ModelShape&, Granularity, kernels::HeadReduction,
                                                   const HeadRows&, int64_t, float);
template std::vector<float> make_nan_scores(int, int64_t);
template std::vector<double> make_nan_scores(int, int64_t);
template void require_valid_scores(int, const std::vector<float>&, int, int64_t, int64_t);
template void require_valid_scores(int, const std::vector<double>&, int, int64_t, int64_t);
template void require_valid_scores(int, const Scores<float>&, int, int64_t, int64_t);
template void require_valid_scores(int, const Scores<double>&, int, int64_t, int64_t);
template std::vector<std::vector<uint32_t>> best_and_tail(const Scores<float>&, std::span<const int64_t>, int64_t,
                                                          int64_t);
template std::vector<std::vector<uint32_t>> best_and_tail(const Scores<double>&, std::span<const int64_t>, int64_t,
                                                          int64_t);
template std::vector<int64_t> count_best_by_row(const Scores<float>&, int, int64_t, int64_t, int64_t);
template std::vector<int64_t> count_best_by_row(const Scores<double>&, int, int64_t, int64_t, int64_t);

}  // namespace kvscope::policies
