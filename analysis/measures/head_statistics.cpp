#include "analysis/measures/head_statistics.h"

#include "analysis/measures/kv_head_attention.h"
#include "policies/methods/score_dispersion.h"

namespace kvscope::analysis {

std::vector<HeadStatistics> head_statistics(std::span<const float> window_attention, size_t n_heads, size_t n_kv_heads,
                                            size_t window) {
    const std::vector<float> scores = kv_head_attention(window_attention, n_heads, n_kv_heads, window);
    const size_t n_prefix = scores.size() / n_kv_heads;
    std::vector<HeadStatistics> statistics;
    for (size_t head = 0; head < n_kv_heads; ++head) {
        const auto of_head = std::span(scores).subspan(head * n_prefix, n_prefix);
        statistics.push_back({policies::standard_deviation(of_head), policies::entropy(of_head)});
    }
    return statistics;
}

}  // namespace kvscope::analysis
