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

/// What the entries of a layer were made of, for how far they are from it.
struct MergedFrom {
    at::Tensor key_sums;                ///< (G, capacity, d) f32, over an entry's tokens, before RoPE
    std::vector<double> key_squares;    ///< (G, capacity) squared norms, summed over an entry's tokens
    std::vector<double> value_squares;  ///< (G, capacity)
};

/// A layer of a cache through which its own prompt is read: entries of one token or of several consecutive ones, the
/// same in all heads.
struct MergedLayer {
    DenseLayer entries;                 ///< (G, capacity, d), keys before RoPE; the first n are filled
    std::vector<float> masses{};        ///< (n) tokens of each entry, as attention counts them
    std::vector<uint32_t> positions{};  ///< (n) of each entry's last token

    std::optional<MergedFrom> from{};  ///< where it is wanted
    uint64_t n_keys = 0;               ///< that merging made, of all heads and chunks, later merged ones included
    uint64_t n_outside = 0;            ///< of these: policies::Merges::n_outside

    int64_t size() const { return static_cast<int64_t>(positions.size()); }
    bool has_merged() const;

    /// (n) Where the entries stand: the last one at its last token, each other as far before the next one as that has
    /// mass. It is `positions` unless a mass was cut (Merges::largest_mass). Queries stand at their own positions: RoPE
    /// depends on differences alone, so that these places and queries that follow on at the sum of the masses are the
    /// same.
    std::vector<int64_t> places() const;

    /// Tokens that went into an entry.
    int64_t n_tokens(size_t entry) const {
        return entry == 0 ? int64_t{positions[0]} + 1 : int64_t{positions[entry]} - int64_t{positions[entry - 1]};
    }

    /// Makes each pair one entry with the given key, the sum of the two values and of the masses, cut where the merges
    /// say so. What lies behind the n entries, `n_behind` of them, moves up.
    void merge(const policies::Merges& merges, int64_t n_behind);

    /// Appends a chunk's tokens, of which `entries` holds keys and values behind its last entry.
    void append(int64_t first, int64_t n);

    /// The keys of the first entries, as many as there are places in `at`, turned to those: (G, capacity, d).
    at::Tensor rotated(const Transformer& model, std::span<const int64_t> at) const;
};

/// (G) of a layer with `from`: the 2-norm, over all tokens, of the difference between a token's key and its entry's,
/// over that of the keys, both before RoPE; the same of values, of which an entry's tokens have equal shares.
struct MergeErrors {
    std::vector<float> keys, values;
};
MergeErrors merge_errors(const MergedLayer& layer);

/// The entries as a run's cache holds them, the same for each KV head, and the tokens that went into each of them;
/// without `stored` where every entry is one token's.
policies::Selection selection_of(const Transformer& model, int64_t n_tokens, const MergedLayer& layer);

/// The entries of a layer in which nothing was merged: its dense cache.
DenseLayer whole_entries(const Transformer& model, const MergedLayer& layer);

}  // namespace kvscope::engine
