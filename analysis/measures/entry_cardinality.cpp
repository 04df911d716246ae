#include "analysis/measures/entry_cardinality.h"

#include <algorithm>

namespace kvscope::analysis {

std::vector<float> largest_cardinality_per_token(const trace::Kept& kept, size_t n_tokens) {
    std::vector<float> sizes(kept.n_layers * n_tokens, 0.0f);
    for (size_t layer = 0; layer < kept.n_layers; ++layer)
        for (size_t row = 0; row < kept.n_rows; ++row)
            for (const uint32_t token : kept.held(layer, row)) {
                float& size = sizes[layer * n_tokens + token];
                size = std::max(size, kept.fate(layer, row, token).cardinality);
            }
    return sizes;
}

std::vector<float> cardinalities_in_alternating_shades(const trace::Kept& kept, size_t n_tokens) {
    std::vector<float> sizes = largest_cardinality_per_token(kept, n_tokens);
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        bool is_odd = false;
        for (const EntryTokens& entry : list_merged_entries(kept, layer, 0, n_tokens)) {
            for (uint32_t token = entry.first; is_odd && token <= entry.last; ++token)
                sizes[layer * n_tokens + token] *= 0.8f;
            is_odd = !is_odd;
        }
    }
    return sizes;
}

std::vector<EntryTokens> list_merged_entries(const trace::Kept& kept, size_t layer, size_t row, size_t n_tokens) {
    std::vector<EntryTokens> entries;
    if (!kept.merges()) return entries;
    for (uint32_t token = 0; token < n_tokens; ++token) {
        const auto fate = kept.fate(layer, row, token);
        if (fate.kind != trace::TokenFate::Kind::merged) continue;
        if (!entries.empty() && entries.back().last + 1 == token && token <= fate.entry &&
            kept.fate(layer, row, entries.back().last).entry == fate.entry)
            entries.back().last = token;
        else
            entries.push_back({token, token, fate.cardinality});
    }
    return entries;
}

}  // namespace kvscope::analysis
