#include "analysis/measures/heads_keeping_token.h"

#include <algorithm>

namespace kvscope::analysis {

std::vector<double> count_heads_keeping_per_layer(const KeptSets& kept) {
    std::vector<double> counts(kept.n_layers * kept.n_tokens, 0.0);
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        double* const of_layer = counts.data() + layer * kept.n_tokens;
        for (size_t row = 0; row < kept.n_rows; ++row)
            kept.each(layer, row, [&](uint32_t token, double share) { of_layer[token] += share; });
    }
    return counts;
}

std::vector<double> count_layers_keeping_token(const KeptSets& kept) {
    std::vector<double> counts(kept.n_tokens, 0.0);
    std::vector<double> most(kept.n_tokens);
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        std::fill(most.begin(), most.end(), 0.0);
        for (size_t row = 0; row < kept.n_rows; ++row)
            kept.each(layer, row, [&](uint32_t token, double share) { most[token] = std::max(most[token], share); });
        for (size_t token = 0; token < kept.n_tokens; ++token) counts[token] += most[token];
    }
    return counts;
}

std::vector<double> heads_keeping(const KeptSets& kept) {
    std::vector<double> counts(kept.n_tokens, 0.0);
    for (size_t layer = 0; layer < kept.n_layers; ++layer)
        for (size_t row = 0; row < kept.n_rows; ++row)
            kept.each(layer, row, [&](uint32_t token, double share) { counts[token] += share; });
    return counts;
}

std::vector<uint16_t> count_holding_heads(const KeptSets& kept) {
    std::vector<uint16_t> counts(kept.n_layers * kept.n_tokens, 0);
    for (size_t layer = 0; layer < kept.n_layers; ++layer)
        for (size_t row = 0; row < kept.n_rows; ++row)
            for (const uint32_t token : kept.row(layer, row)) ++counts[layer * kept.n_tokens + token];
    return counts;
}

std::vector<double> share_of_heads_keeping(const KeptSets& kept, std::span<const int> layers) {
    std::vector<double> shares(kept.n_tokens, 0.0);
    for (const int layer : layers)
        for (size_t row = 0; row < kept.n_rows; ++row)
            kept.each(static_cast<size_t>(layer), row, [&](uint32_t token, double share) { shares[token] += share; });
    const double n_rows = static_cast<double>(layers.size()) * static_cast<double>(kept.n_rows);
    for (double& share : shares) share /= n_rows;
    return shares;
}

std::vector<double> share_of_heads_keeping(const trace::Reader& reader, int prompt, int run,
                                           std::span<const int> layers) {
    const auto n = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    return share_of_heads_keeping(kept_sets(*reader.kept(prompt, run), n), layers);
}

double smallest_positive_count(const std::vector<double>& counts) {
    double least = 1;
    for (const double count : counts)
        if (count > 0) least = std::min(least, count);
    return least;
}

}  // namespace kvscope::analysis
