#include "analysis/measures/retention.h"

namespace kvscope::analysis {

std::vector<uint16_t> retention_counts(const KeptSets& kept) {
    std::vector<uint16_t> counts(kept.n_layers * kept.n_tokens, 0);
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        uint16_t* layer_counts = counts.data() + layer * kept.n_tokens;
        for (size_t row = 0; row < kept.n_rows; ++row) {
            for (const uint32_t token : kept.row(layer, row)) ++layer_counts[token];
        }
    }
    return counts;
}

std::vector<uint16_t> layer_counts(const KeptSets& kept) {
    std::vector<uint16_t> counts(kept.n_tokens, 0);
    std::vector<size_t> last_layer(kept.n_tokens, 0);  // 1 + the last layer that counted a token
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        for (size_t row = 0; row < kept.n_rows; ++row) {
            for (const uint32_t token : kept.row(layer, row)) {
                if (last_layer[token] == layer + 1) continue;
                last_layer[token] = layer + 1;
                ++counts[token];
            }
        }
    }
    return counts;
}

std::vector<uint16_t> head_counts(const KeptSets& kept) {
    std::vector<uint16_t> counts(kept.n_tokens, 0);
    for (const uint32_t token : kept.indices) ++counts[token];
    return counts;
}

}  // namespace kvscope::analysis
