#include "analysis/measures/attention_lost.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <stdexcept>

namespace kvscope::analysis {

std::vector<double> attention_lost(std::span<const float> window_attention, size_t n_heads, const KeptSets& kept,
                                   size_t layer) {
    const size_t n = kept.n_tokens;
    if (kept.n_rows == 0 || n_heads % kept.n_rows != 0) {
        throw std::invalid_argument(fmt::format(
            "attention lost: {} query heads are no multiple of {} rows of kept entries", n_heads, kept.n_rows));
    }
    if (window_attention.size() != n_heads * n) {
        throw std::invalid_argument(
            fmt::format("attention lost: {} values are not {} heads x {} tokens", window_attention.size(), n_heads, n));
    }
    const size_t group = n_heads / kept.n_rows;
    std::vector<double> lost(n, 0.0);
    size_t n_counted = 0;
    for (size_t head = 0; head < n_heads; ++head) {
        const auto attention = window_attention.subspan(head * n, n);
        const double total = std::accumulate(attention.begin(), attention.end(), 0.0);
        if (!(total > 0)) continue;
        ++n_counted;
        size_t token = 0;
        const auto lose_until = [&](size_t end) {
            for (; token < end; ++token) lost[token] += static_cast<double>(attention[token]) / total;
        };
        for (const uint32_t held : kept.row(layer, head / group)) {
            lose_until(held);
            token = held + size_t{1};
        }
        lose_until(n);
    }
    for (double& share : lost)
        share = n_counted > 0 ? share / static_cast<double>(n_counted) : std::numeric_limits<double>::quiet_NaN();
    return lost;
}

}  // namespace kvscope::analysis
