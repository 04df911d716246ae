#include "analysis/measures/evidence.h"

#include <algorithm>

namespace kvscope::analysis {
namespace {

/// Returns how many rows of all layers keep each evidence token.
std::vector<size_t> rows_with(const KeptSets& kept, std::span<const uint32_t> evidence) {
    std::vector<size_t> counts(evidence.size());
    for (size_t layer = 0; layer < kept.n_layers; ++layer)
        for (size_t row = 0; row < kept.n_rows; ++row) {
            const auto tokens = kept.row(layer, row);
            for (size_t i = 0; i < evidence.size(); ++i)
                counts[i] += std::ranges::binary_search(tokens, evidence[i]) ? 1 : 0;
        }
    return counts;
}

}  // namespace

EvidenceShares evidence_shares(const KeptSets& kept, std::span<const uint32_t> evidence) {
    const size_t n_rows = kept.n_layers * kept.n_rows;
    if (evidence.empty() || n_rows == 0) return {};
    EvidenceShares shares{0, 0};
    for (const size_t count : rows_with(kept, evidence)) {
        shares.kept += static_cast<double>(count);
        shares.gone += count == 0 ? 1 : 0;
    }
    const auto n = static_cast<double>(evidence.size());
    return {shares.kept / (n * static_cast<double>(n_rows)), shares.gone / n};
}

}  // namespace kvscope::analysis
