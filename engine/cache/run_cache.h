#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/cache/stored_row.h"
#include "engine/model/transformer.h"
#include "policies/interface/policy.h"
#include "policies/interface/stored_layer.h"

namespace kvscope::engine {

inline char* bytes_of(const at::Tensor& tensor) { return static_cast<char*>(tensor.data_ptr()); }

/// All entries of a layer, which must be the same in every row, in order.
struct HeldLayer {
    at::Tensor keys, values;  ///< (G, n, d) in the model's type: keys after RoPE, values summed over an entry's tokens
    std::vector<float> masses;        ///< (n)
    std::vector<uint32_t> positions;  ///< (n)
};

/// Compressed cache of one run: kept prompt entries and decoded tokens. Each layer has R packed rows of different
/// lengths, one for each KV head, or for each query head if the granularity says so.
class RunCache {
 public:
    /// @param model on the device for the entries; merged entries and those stored in parts require the processor
    RunCache(const Transformer& model, policies::Granularity granularity, policies::Positions positions,
             bool evicts_while_decoding);

    const Transformer& model() const { return *model_; }
    policies::Granularity granularity() const { return granularity_; }
    int n_rows() const { return n_rows_; }
    int n_layers() const { return static_cast<int>(layers_.size()); }

    /// Copies a layer's kept entries from its dense cache, whole or as the selection describes.
    /// @param later receives copies for the caller to run before the layer is used, so that several caches share a call
    /// @throws policies::SelectionError, RunError for an invalid selection or description, before anything is read;
    /// RunError, leaving the layer unusable, if a part shares numbers that no layer stores
    void compress(int layer, const policies::Selection& selection, const DenseLayer& dense,
                  std::vector<kernels::RowCopy>* later = nullptr);

    /// Stores entries whose numbers are all in the selection. @throws as `compress`; RunError for missing numbers
    void hold(int layer, const policies::Selection& selection, int64_t n_tokens);

    /// Calls `edit` with the values of a row's entries, (n_entries, d) f32, and stores the result. Plain rows only.
    void edit_values(int layer, int row, const std::function<void(std::span<float>)>& edit);

    /// Shares a dense layer without copying (for the full run). Decoded entries use its remaining space.
    void adopt(int layer, const DenseLayer& dense, int64_t n_entries);

    /// Reserves space for `extra` more entries in every row.
    void reserve(int64_t extra);

    /// Number of a row's entries, and how many of them are plain (whole keys and values). Plain entries come last.
    int64_t n_entries(int layer, int row) const;
    int64_t n_plain(int layer, int row) const { return static_cast<int64_t>(positions(layer, row).size()); }

    /// Whether the cache assigns positions to entries itself (`Positions::cache`).
    bool renumbers() const { return positions_ == policies::Positions::cache; }

    /// Keys and values of consecutive tokens in the memory of the cache's device.
    struct Tokens {
        int64_t n = 0;
        const void* keys = nullptr;  ///< d numbers each, after RoPE
        size_t key_stride = 0;       ///< bytes between keys
        const void* values = nullptr;
        size_t value_stride = 0;
        int64_t position = 0;  ///< position of the first token
    };
    /// Appends tokens to a row. Adds to `copies` the copies that must be made before the row is read.
    void append(int layer, int row, const Tokens& tokens, std::vector<kernels::RowCopy>& copies);

    /// Memory for rotated keys that a view refers to.
    using Scratch = std::vector<at::Tensor>;
    struct RowView {
        const void* keys = nullptr;
        const void* values = nullptr;
        int64_t first = 0;      ///< number of entries that the sliding window skips
        int64_t n_entries = 0;  ///< number of visible entries
    };
    /// Returns the first `n_visible` plain entries of a row for attention, except those outside the sliding window of a
    /// query at `position`.
    RowView view(int layer, int row, int64_t n_visible, int64_t position, int64_t sliding_window,
                 Scratch& scratch) const;

    /// Returns the keys (n, d) of a plain row's first n entries in the processor's memory.
    at::Tensor keys_on_processor(int layer, int row, int64_t n) const;

    /// Returns the first of a plain row's `n_visible` entries that a query sees (window 0: all).
    /// @param position the query's position, or its place if the cache renumbers
    int64_t first_visible(int layer, int row, int64_t n_visible, int64_t position, int64_t sliding_window) const;

    /// Whether a layer stores some entries in parts instead of as whole keys and values.
    bool stores_parts(int layer) const {
        const auto& source = layers_[static_cast<size_t>(layer)];
        return !source.stored.empty() || !source.grown.rows.empty();
    }

    /// Returns a row's entries that are stored in parts. They precede the plain entries.
    std::vector<std::shared_ptr<const StoredEntries>> stored(int layer, int row) const;

    /// Returns the entries stored in parts that a query at `position` sees.
    std::vector<StoredEntries::Attended> stored_view(int layer, int row, int64_t position,
                                                     int64_t sliding_window) const;

    std::span<const uint32_t> positions(int layer, int row) const;

    /// Describes how the given whole tokens shall be stored.
    using Describe = std::function<policies::StoredLayer(const policies::LeavingTokens&)>;

    /// Stores the layer's whole tokens as `describe` says, except the first and last ones named by `whole`.
    /// @param n_tokens number of prompt tokens and decoded tokens
    /// @throws policies::SelectionError for an invalid description; RunError if its kind differs from earlier ones, if
    /// rows hold different tokens, or if the cache renumbers entries. The layer is then unusable.
    void store_others(int layer, const policies::WholeTokens& whole, int64_t n_tokens, const Describe& describe);

    /// Replaces entries stored in parts by whole keys and values. @throws RunError for merged entries
    void make_whole(int layer);

    /// @throws RunError if rows hold different entries or the cache renumbers them
    HeldLayer held(int layer) const;

    /// Replaces a layer's entries. The last n_plain entries of `held` are plain already and stay so.
    void hold_merged(int layer, const HeldLayer& held, int64_t n_plain);

    /// Queries that are stored with a layer for its policy, in the model's type.
    std::vector<char>& queries(int layer) { return layers_[static_cast<size_t>(layer)].queries; }

    /// Removes plain entries from a row. @param entries ascending indices
    void erase(int layer, int row, std::span<const uint32_t> entries);

    /// Returns the bytes of keys and values in a row or a layer, including padding, without reserved space.
    size_t row_bytes(int layer, int row) const;
    size_t layer_bytes(int layer) const;

    /// Lengths of all rows, to which a cache can return after decoding if no entries were evicted.
    using Mark = std::vector<std::vector<int64_t>>;
    Mark mark() const;
    void rewind(const Mark& mark);

    /// Returns a copy with space for `extra` more entries in every row.
    RunCache clone(int64_t extra) const;

 private:
    /// Tokens that were whole at first and are now stored in parts. No other cache shares them.
    struct Grown {
        std::vector<std::shared_ptr<StoredEntries>> rows;  // (R); empty if there are none
        std::vector<std::shared_ptr<StoredBlock>> blocks;
    };
    struct Layer {
        at::Tensor keys, values;                       // flat: entries of row r start at begin[r] * d
        std::vector<int64_t> begin;                    // (R) index of each row's first entry
        std::vector<int64_t> capacity;                 // (R) in entries
        int64_t room = 0;                              // reserved entries in each row's capacity
        std::vector<std::vector<uint32_t>> positions;  // (R) positions of each row's entries
        // (R) entries stored in parts, before the plain ones; empty if there are none
        std::vector<std::vector<std::shared_ptr<const StoredEntries>>> stored;
        std::vector<std::shared_ptr<const StoredBlock>> blocks;  // shared by several rows or with other layers
        Grown grown;
        std::vector<char> queries;
    };
    // Keyed by identity, so that a new description at the address of a deleted one is not mistaken for it.
    using Blocks =
        std::map<std::weak_ptr<const policies::StoredBlock>, std::shared_ptr<const StoredBlock>, std::owner_less<>>;

    void require_holdable(int layer, const policies::Selection& selection, int64_t n_tokens) const;
    Layer& allocate(int layer, const std::vector<std::vector<uint32_t>>& rows);
    void compress_whole(int layer, const std::vector<std::vector<uint32_t>>& rows, const DenseLayer& dense,
                        std::vector<kernels::RowCopy>* later = nullptr);
    Layer packed(const Layer& layer, int64_t extra) const;
    void turn_keys(Layer& layer, int row, int64_t first, std::span<const int64_t> by) const;
    void turn(void* keys, std::span<const int64_t> by) const;
    /// Describes a copy of n entries between two arrays: the entries from `first` on, or those listed in `rows`.
    kernels::RowCopy copy_of(const at::Tensor& from, int64_t first, const at::Tensor& to, int64_t to_first, int64_t n,
                             const uint32_t* rows = nullptr) const;
    size_t entry_bytes() const;
    size_t stored_bytes(int layer, int row) const;
    size_t block_bytes(int layer) const;
    void require_processor() const;
    void store(int layer, const policies::StoredLayer& described, const DenseLayer* dense);
    StoredSource source_of(int layer, const policies::StoredLayer& described) const;
    std::vector<float> turned_back(std::vector<float> keys, std::span<const uint32_t> positions) const;
    void require_growable(int layer, const policies::StoredLayer& described,
                          const std::vector<uint32_t>& positions) const;
    void grow(int layer, const policies::StoredLayer& described);
    void shrink(int layer);
    void drop_unused_blocks();
    /// Copies the grown entries, so that no other cache shares them.
    void detach_grown();

    const Transformer* model_;
    policies::Granularity granularity_;
    policies::Positions positions_;
    bool unrotated_;  // keys are stored at position 0 and rotated when read, because evictions move them often
    int n_rows_;
    std::vector<Layer> layers_;
    Blocks blocks_;  // blocks of the layers stored so far
};

}  // namespace kvscope::engine
