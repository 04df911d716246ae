#include "analysis/measures/token_coverage.h"

#include <algorithm>

namespace kvscope::analysis {
namespace {

Coverage of(size_t count, size_t n_tokens) {
    return {count, n_tokens == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(n_tokens)};
}

void mark(const KeptSets& kept, size_t layer, std::vector<char>& seen) {
    for (size_t row = 0; row < kept.n_rows; ++row) {
        for (const uint32_t token : kept.row(layer, row)) seen[token] = 1;
    }
}

size_t marked(const std::vector<char>& seen) { return static_cast<size_t>(std::count(seen.begin(), seen.end(), 1)); }

}  // namespace

Coverage model_coverage(const KeptSets& kept) {
    std::vector<char> seen(kept.n_tokens, 0);
    for (size_t layer = 0; layer < kept.n_layers; ++layer) mark(kept, layer, seen);
    return of(marked(seen), kept.n_tokens);
}

std::vector<Coverage> layer_coverage(const KeptSets& kept) {
    std::vector<Coverage> coverage;
    coverage.reserve(kept.n_layers);
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        std::vector<char> seen(kept.n_tokens, 0);
        mark(kept, layer, seen);
        coverage.push_back(of(marked(seen), kept.n_tokens));
    }
    return coverage;
}

std::vector<Coverage> token_coverage_of_heads(const KeptSets& kept) {
    std::vector<Coverage> coverage;
    coverage.reserve(kept.n_layers * kept.n_rows);
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        for (size_t row = 0; row < kept.n_rows; ++row) coverage.push_back(of(kept.count(layer, row), kept.n_tokens));
    }
    return coverage;
}

}  // namespace kvscope::analysis
