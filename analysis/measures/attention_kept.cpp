#include "analysis/measures/attention_kept.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <stdexcept>

namespace kvscope::analysis {

std::vector<float> attention_kept(std::span<const float> window_attention, size_t n_heads, const KeptSets& kept) {
    if (kept.n_rows == 0 || n_heads % kept.n_rows != 0) {
        throw std::invalid_argument(fmt::format(
            "attention kept: {} query heads are not a multiple of {} rows of kept entries", n_heads, kept.n_rows));
    }
    if (window_attention.size() != kept.n_layers * n_heads * kept.n_tokens) {
        throw std::invalid_argument(fmt::format("attention kept: {} values are not {} layers x {} heads x {} tokens",
                                                window_attention.size(), kept.n_layers, n_heads, kept.n_tokens));
    }
    const size_t group = n_heads / kept.n_rows;
    std::vector<float> shares;
    shares.reserve(kept.n_layers * n_heads);
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        for (size_t head = 0; head < n_heads; ++head) {
            const auto attention = window_attention.subspan((layer * n_heads + head) * kept.n_tokens, kept.n_tokens);
            const double total = std::accumulate(attention.begin(), attention.end(), 0.0);
            double sum = 0;
            for (const uint32_t token : kept.row(layer, head / group)) sum += static_cast<double>(attention[token]);
            shares.push_back(total > 0 ? static_cast<float>(sum / total) : std::numeric_limits<float>::quiet_NaN());
        }
    }
    return shares;
}

}  // namespace kvscope::analysis
