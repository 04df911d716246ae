#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trace/records/records.h"

namespace kvscope::analysis {

/// View of the kept tokens of one run: L layers, R rows per layer (KV heads or query heads), N prompt tokens.
/// Row (l, r) is indices[offsets[l*R + r] ... offsets[l*R + r + 1]): ascending positions below N.
struct KeptSets {
    size_t n_layers = 0;
    size_t n_rows = 0;
    size_t n_tokens = 0;
    std::span<const uint64_t> offsets;  ///< start of each row in `indices`, then the end (L*R + 1)
    std::span<const uint32_t> indices;
    /// For each of `indices`, the number of tokens in its entry; empty if all entries hold one token.
    std::span<const uint32_t> entry_tokens = {};

    [[nodiscard]] std::span<const uint32_t> row(size_t layer, size_t row) const {
        const size_t i = layer * n_rows + row;
        return indices.subspan(offsets[i], offsets[i + 1] - offsets[i]);
    }
    /// Calls visit(token, share) for each token of a row. The share is 1/n if n tokens share one entry.
    template <class Visit>
    void each(size_t layer, size_t row, Visit visit) const {
        const size_t place = layer * n_rows + row;
        for (uint64_t i = offsets[place]; i < offsets[place + 1]; ++i)
            visit(indices[i], entry_tokens.empty() ? 1.0 : 1.0 / entry_tokens[i]);
    }
    [[nodiscard]] size_t count(size_t layer, size_t row) const {
        const size_t i = layer * n_rows + row;
        return offsets[i + 1] - offsets[i];
    }
};

/// Returns the tokens that a cache holds, alone or in a merged entry. The result refers to `kept`.
[[nodiscard]] inline KeptSets kept_sets(const trace::Kept& kept, size_t n_tokens) {
    if (kept.merges())
        return {kept.n_layers, kept.n_rows, n_tokens, kept.held_offsets, kept.held_tokens, kept.held_with};
    return {kept.n_layers, kept.n_rows, n_tokens, kept.offsets, kept.indices};
}

/// Returns the positions of the entries. Budgets limit their number. Equals kept_sets() unless entries are merged.
[[nodiscard]] inline KeptSets entry_sets(const trace::Kept& kept, size_t n_tokens) {
    return {kept.n_layers, kept.n_rows, n_tokens, kept.offsets, kept.indices};
}

/// Whether the measures "attention kept" and "recall" are defined. Both are undefined if a run merges tokens or keeps
/// all tokens in another form.
[[nodiscard]] bool can_measure_kept_tokens(const trace::RunAttributes& run, const KeptSets& kept);

/// Provides the kept sets of a run that is not in a trace. `record` must outlive this object.
class HeldTokens {
 public:
    HeldTokens(const trace::RunRecord& record, size_t n_layers, size_t n_tokens);
    HeldTokens(const HeldTokens&) = delete;
    HeldTokens& operator=(const HeldTokens&) = delete;
    [[nodiscard]] const KeptSets& sets() const { return sets_; }

 private:
    trace::Kept merged_;
    KeptSets sets_;
};

/// @throws std::invalid_argument, naming the row, if offsets or positions do not ascend or do not match L, R and N
void check_kept_sets(const KeptSets& kept);

}  // namespace kvscope::analysis
