#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/model/transformer.h"
#include "policies/interface/policy.h"

namespace kvscope::engine {

/// Sums over the tokens of each entry, for computing the error of merging.
struct MergedFrom {
    at::Tensor key_sums;                ///< (G, capacity, d) f32 sums of keys before RoPE
    std::vector<double> key_squares;    ///< (G, capacity) sums of squared norms of the keys
    std::vector<double> value_squares;  ///< (G, capacity) sums of squared norms of the values
};

/// A layer of a cache through which its own prompt is read. An entry holds one or more consecutive tokens.
struct MergedLayer {
    DenseLayer entries;                 ///< (G, capacity, d) with keys before RoPE; the first n entries are in use
    std::vector<float> masses{};        ///< (n) number of tokens in each entry, as attention counts them
    std::vector<uint32_t> positions{};  ///< (n) position of each entry's last token

    std::optional<MergedFrom> from{};  ///< set if merge errors are requested
    uint64_t n_keys = 0;     ///< number of merged keys over all heads and chunks, including those merged again later
    uint64_t n_outside = 0;  ///< how many of these keys policies::Merges::n_outside counts

    int64_t size() const { return static_cast<int64_t>(positions.size()); }
    bool has_merged() const;

    /// Returns the places of the entries on the RoPE axis, (n). The last entry is at its last token; every other entry
    /// precedes the next one by that entry's mass. Equals `positions` unless a mass was limited.
    std::vector<int64_t> places() const;

    /// Returns the number of tokens that were merged into an entry.
    int64_t n_tokens(size_t entry) const {
        return entry == 0 ? int64_t{positions[0]} + 1 : int64_t{positions[entry]} - int64_t{positions[entry - 1]};
    }

    /// Replaces each pair by one entry with the given key, and with the sums of the values and of the masses (limited
    /// as the merges say). The `n_behind` entries after the first n move up.
    void merge(const policies::Merges& merges, int64_t n_behind);

    /// Appends the tokens of a chunk, whose keys and values are already in `entries` after the last entry.
    void append(int64_t first, int64_t n);

    /// Returns the keys of the first entries, rotated to the places in `at`: (G, capacity, d).
    at::Tensor rotated(const Transformer& model, std::span<const int64_t> at) const;
};

/// Relative errors of merging, (G) each: the 2-norm of the differences between tokens' keys and their entries' keys,
/// divided by the 2-norm of the keys, before RoPE. Values are divided equally among an entry's tokens. Requires `from`.
struct MergeErrors {
    std::vector<float> keys, values;
};
MergeErrors merge_errors(const MergedLayer& layer);

/// Returns the entries as a selection for a run's cache, with the tokens of each entry.
policies::Selection selection_of(const Transformer& model, int64_t n_tokens, const MergedLayer& layer);

/// Returns the dense cache of a layer without merged entries.
DenseLayer whole_entries(const Transformer& model, const MergedLayer& layer);

}  // namespace kvscope::engine
