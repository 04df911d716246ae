#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trace/records.h"

namespace kvscope::analysis {

/// Rows of prompt tokens, those of one run of one prompt: L layers, R rows a layer (KV heads, or query heads where K
/// and V are repeated), N prompt tokens. Row (l, r) holds indices[offsets[l*R + r] ... offsets[l*R + r + 1]), ascending
/// positions below N. A view: the arrays stay with their owner (trace::Reader's answer, or a what-if's result).
struct KeptSets {
    size_t n_layers = 0;
    size_t n_rows = 0;
    size_t n_tokens = 0;
    std::span<const uint64_t> offsets;  ///< (L*R + 1)
    std::span<const uint32_t> indices;
    /// Of each of `indices` how many tokens went into its entry; empty: 1 each.
    std::span<const uint32_t> entry_tokens = {};

    std::span<const uint32_t> row(size_t layer, size_t row) const {
        const size_t i = layer * n_rows + row;
        return indices.subspan(offsets[i], offsets[i + 1] - offsets[i]);
    }
    /// Calls with each token of a row and the part of an entry that it has: one n-th where n tokens went into one
    /// entry, so that a row's parts add up to its entries.
    template <class Visit>
    void each(size_t layer, size_t row, Visit visit) const {
        const size_t place = layer * n_rows + row;
        for (uint64_t i = offsets[place]; i < offsets[place + 1]; ++i)
            visit(indices[i], entry_tokens.empty() ? 1.0 : 1.0 / entry_tokens[i]);
    }
    size_t count(size_t layer, size_t row) const {
        const size_t i = layer * n_rows + row;
        return offsets[i + 1] - offsets[i];
    }
};

/// The tokens that a run's cache holds something of: a token that was merged into an entry is kept, not dropped. This
/// is what every measure of tokens is made from. The trace's entries have to outlive it.
inline KeptSets kept_sets(const trace::Kept& kept, size_t n_tokens) {
    if (kept.merges())
        return {kept.n_layers, kept.n_rows, n_tokens, kept.held_offsets, kept.held_tokens, kept.held_with};
    return {kept.n_layers, kept.n_rows, n_tokens, kept.offsets, kept.indices};
}

/// The entries themselves, by their positions: what budgets count. The same but where entries are merged.
inline KeptSets entry_sets(const trace::Kept& kept, size_t n_tokens) {
    return {kept.n_layers, kept.n_rows, n_tokens, kept.offsets, kept.indices};
}

/// Whether what a run dropped says what it lost (attention kept and lost, recall): not of one that has all tokens and
/// stores them otherwise, or merges them. The full cache has them, too, and is what the others are held against.
bool is_measured_by_tokens(const trace::RunAttributes& run, const KeptSets& kept);

/// kept_sets of a run that is in no trace. The record has to outlive it.
class HeldTokens {
 public:
    HeldTokens(const trace::RunRecord& record, size_t n_layers, size_t n_tokens);
    HeldTokens(const HeldTokens&) = delete;
    HeldTokens& operator=(const HeldTokens&) = delete;
    const KeptSets& sets() const { return sets_; }

 private:
    trace::Kept merged_;
    KeptSets sets_;
};

/// @throws std::invalid_argument naming the row when offsets or positions do not fit L, R and N, or do not ascend.
void check_kept_sets(const KeptSets& kept);

}  // namespace kvscope::analysis
