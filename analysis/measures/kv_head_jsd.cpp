#include "analysis/measures/kv_head_jsd.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/measures/kv_head_attention.h"
#include "kernels/divergence.h"

namespace kvscope::analysis {

std::vector<float> kv_head_jsd(std::span<const float> window_attention, size_t n_heads, size_t n_kv_heads,
                               size_t window) {
    const std::vector<float> means = kv_head_attention(window_attention, n_heads, n_kv_heads, window);
    const size_t n_prefix = means.size() / n_kv_heads;
    std::vector<float> jsd(n_kv_heads * n_kv_heads);
    kernels::jsd_matrix_of_weights(means.data(), static_cast<int64_t>(n_kv_heads), static_cast<int64_t>(n_prefix),
                                   static_cast<int64_t>(n_prefix), jsd.data());
    return jsd;
}

std::vector<double> mean_divergences_from_other_heads(std::span<const float> divergence, size_t n) {
    if (divergence.size() != n * n)
        throw std::invalid_argument(
            fmt::format("mean divergences: {} values are not {} heads x {} heads", divergence.size(), n, n));
    std::vector<double> means;
    for (size_t head = 0; head < n; ++head) {
        double sum = 0;
        size_t n_others = 0;
        for (size_t other = 0; other < n; ++other) {
            const float value = divergence[head * n + other];
            if (other == head || std::isnan(value)) continue;
            sum += static_cast<double>(value);
            ++n_others;
        }
        means.push_back(n_others > 0 ? sum / static_cast<double>(n_others) : std::numeric_limits<double>::quiet_NaN());
    }
    return means;
}

}  // namespace kvscope::analysis
