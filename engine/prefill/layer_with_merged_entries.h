#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/model/transformer.h"
#include "policies/api/further_interfaces.h"

namespace kvscope::engine {

/// Sums over each entry's tokens, for merge_errors().
struct MergedFrom {
    at::Tensor key_sums;                ///< (G, capacity, d) f32 sums of keys before RoPE
    std::vector<double> key_squares;    ///< (G, capacity) sums of squared norms of the keys
    std::vector<double> value_squares;  ///< (G, capacity) sums of squared norms of the values
};

/// A layer of a cache whose entries are merged while the prompt is read. An entry holds consecutive tokens.
struct MergedLayer {
    DenseLayer entries;                 ///< (G, capacity, d) with keys before RoPE; the first n are in use
    std::vector<float> masses{};        ///< (n) number of tokens in each entry, as attention counts them
    std::vector<uint32_t> positions{};  ///< (n) position of each entry's last token

    std::optional<MergedFrom> from{};  ///< set if merge errors are requested
    uint64_t n_keys = 0;               ///< number of merged keys in all heads and chunks, including repeated merges
    uint64_t n_outside = 0;            ///< number of these keys that policies::Merges::n_outside counts

    [[nodiscard]] int64_t size() const { return static_cast<int64_t>(positions.size()); }
    [[nodiscard]] bool has_merged() const;

    /// Returns the entries' places for RoPE, (n). The last entry is at its last token; every other entry's place is the
    /// next entry's place minus the next entry's mass. Equals `positions` unless a mass was limited.
    [[nodiscard]] std::vector<int64_t> places() const;

    [[nodiscard]] int64_t n_tokens(size_t entry) const {
        return entry == 0 ? int64_t{positions[0]} + 1 : int64_t{positions[entry]} - int64_t{positions[entry - 1]};
    }

    /// Merges pairs of entries. Each new key comes from `merges`; values and masses are summed, and masses are limited
    /// by merges.largest_mass. The `n_after` entries after the first n move up.
    void merge(const policies::Merges& merges, int64_t n_after);

    void append(int64_t first, int64_t n);

    /// Returns the keys (G, capacity, d). The first at.size() keys are rotated to the positions `at`.
    [[nodiscard]] at::Tensor rotated(const Transformer& model, std::span<const int64_t> at) const;
};

/// Relative 2-norm errors of the merged keys and values, one number per KV head (G). Keys are compared before RoPE.
/// Each token of an entry gets an equal part of the entry's value. Requires `from`.
struct MergeErrors {
    std::vector<float> keys, values;
};
[[nodiscard]] MergeErrors merge_errors(const MergedLayer& layer);

[[nodiscard]] policies::Selection selection_of_merged_layer(const Transformer& model, int64_t n_tokens,
                                                            const MergedLayer& layer);

[[nodiscard]] DenseLayer to_dense_layer(const Transformer& model, const MergedLayer& layer);

}  // namespace kvscope::engine
