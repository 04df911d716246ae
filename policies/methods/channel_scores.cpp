#include "policies/methods/channel_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/select_topk.h"

namespace kvscope::policies {
namespace {

std::vector<double> mean_squared_queries(const LayerObservations& observations, int head, int window) {
    const int d = observations.shape.head_dim, group = observations.shape.group();
    std::vector<double> mean(static_cast<size_t>(d), 0.0);
    for (int h = head * group; h < (head + 1) * group; ++h)
        for (int i = observations.n_window - window; i < observations.n_window; ++i) {
            const float* query = observations.window_queries.data() + (int64_t{h} * observations.n_window + i) * d;
            for (int c = 0; c < d; ++c) mean[static_cast<size_t>(c)] += double{query[c]} * query[c];
        }
    for (double& value : mean) value /= group * window;
    return mean;
}

std::vector<double> mean_squared_keys(const LayerObservations& observations, int head) {
    const auto d = static_cast<size_t>(observations.shape.head_dim);
    std::vector<double> mean(d, 0.0);
    std::vector<float> key(d);
    for (int64_t j = 0; j < observations.n_tokens; ++j) {
        read_entry(observations.keys, head, j, observations.shape.head_dim, key.data());
        for (size_t c = 0; c < d; ++c) mean[c] += double{key[c]} * key[c];
    }
    for (double& value : mean) value /= static_cast<double>(observations.n_tokens);
    return mean;
}

}  // namespace

std::vector<float> channel_scores(const LayerObservations& observations, int window) {
    window = static_cast<int>(std::min<int64_t>(window, observations.n_tokens));
    if (window > observations.n_window)
        throw std::logic_error(
            fmt::format("expected {} observed window queries, found {}", window, observations.n_window));
    std::vector<float> scores;
    for (int head = 0; head < observations.shape.n_kv_heads; ++head) {
        const auto queries = mean_squared_queries(observations, head, window);
        const auto keys = mean_squared_keys(observations, head);
        for (size_t c = 0; c < queries.size(); ++c) scores.push_back(static_cast<float>(queries[c] * keys[c]));
    }
    return scores;
}

std::vector<uint16_t> best_channels(std::span<const float> scores, int n) {
    std::vector<uint32_t> best(static_cast<size_t>(n));
    kernels::select_topk(scores.data(), static_cast<int64_t>(scores.size()), n, best.data());
    return {best.begin(), best.end()};
}

}  // namespace kvscope::policies
