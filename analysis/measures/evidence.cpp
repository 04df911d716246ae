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

double system_dropped(const KeptSets& kept, std::int64_t n_system) {
    const size_t n_rows = kept.n_layers * kept.n_rows;
    const size_t n = n_system > 0 ? static_cast<size_t>(n_system) : 0;
    if (n == 0 || n >= kept.n_tokens || n_rows == 0) return std::numeric_limits<double>::quiet_NaN();
    size_t n_kept_of_system = 0;
    for (size_t layer = 0; layer < kept.n_layers; ++layer)
        for (size_t row = 0; row < kept.n_rows; ++row) {
            const auto tokens = kept.row(layer, row);
            n_kept_of_system += static_cast<size_t>(std::ranges::lower_bound(tokens, n) - tokens.begin());
        }
    const auto kept_share = [&](size_t n_kept, size_t n_tokens) {
        return static_cast<double>(n_kept) / (static_cast<double>(n_tokens) * static_cast<double>(n_rows));
    };
    return kept_share(kept.indices.size() - n_kept_of_system, kept.n_tokens - n) - kept_share(n_kept_of_system, n);
}

}  // namespace kvscope::analysis
