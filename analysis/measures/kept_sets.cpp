#include "analysis/measures/kept_sets.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kvscope::analysis {

HeldTokens::HeldTokens(const trace::RunRecord& record, size_t n_layers, size_t n_tokens) {
    const size_t n_rows = n_layers > 0 ? (record.kept_offsets.size() - 1) / n_layers : 0;
    sets_ = {n_layers, n_rows, n_tokens, record.kept_offsets, record.kept_indices, {}};
    if (record.merged_token_entry.empty()) return;
    merged_.n_layers = n_layers;
    merged_.n_rows = n_rows;
    merged_.offsets = record.kept_offsets;
    merged_.token_entry = record.merged_token_entry;
    merged_.find_held_tokens();
    sets_.offsets = merged_.held_offsets;
    sets_.indices = merged_.held_tokens;
    sets_.entry_tokens = merged_.held_with;
}

bool can_measure_kept_tokens(const trace::RunAttributes& run, const KeptSets& kept) {
    return run.is_full() || kept.indices.size() < kept.n_layers * kept.n_rows * kept.n_tokens;
}

void check_kept_sets(const KeptSets& kept) {
    const size_t n_rows = kept.n_layers * kept.n_rows;
    if (kept.offsets.size() != n_rows + 1) {
        throw std::invalid_argument(fmt::format("kept sets: {} layers of {} rows need {} offsets, found {}",
                                                kept.n_layers, kept.n_rows, n_rows + 1, kept.offsets.size()));
    }
    if (kept.offsets.front() != 0 || kept.offsets.back() != kept.indices.size()) {
        throw std::invalid_argument(
            fmt::format("kept sets: offsets run from {} to {}, expected 0 to {}, the number of kept "
                        "entries",
                        kept.offsets.front(), kept.offsets.back(), kept.indices.size()));
    }
    for (size_t i = 0; i < n_rows; ++i) {
        if (kept.offsets[i + 1] < kept.offsets[i] || kept.offsets[i + 1] > kept.indices.size()) {
            throw std::invalid_argument(fmt::format("kept sets: layer {}, row {}: the offsets {} and {} do not ascend",
                                                    i / kept.n_rows, i % kept.n_rows, kept.offsets[i],
                                                    kept.offsets[i + 1]));
        }
        for (uint64_t j = kept.offsets[i]; j < kept.offsets[i + 1]; ++j) {
            const bool ascends = j == kept.offsets[i] || kept.indices[j - 1] < kept.indices[j];
            if (!ascends || kept.indices[j] >= kept.n_tokens) {
                throw std::invalid_argument(
                    fmt::format("kept sets: layer {}, row {}: position {} must be above the preceding position and "
                                "below {}, the number of prompt tokens",
                                i / kept.n_rows, i % kept.n_rows, kept.indices[j], kept.n_tokens));
            }
        }
    }
}

}  // namespace kvscope::analysis
