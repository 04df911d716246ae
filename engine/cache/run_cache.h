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

/// Compressed cache of one run: the kept prompt entries and the decoded tokens. Each layer has R ragged rows, one for
/// each KV head, or for each query head if the granularity says so. Rows are packed and have their own lengths. The
/// buffers contain only the kept entries until space for decoding is reserved.
class RunCache {
 public:
    /// @param model the model on the device for the entries. Merged entries and entries stored in parts require the
    /// processor (Transformer::on_processor).
    RunCache(const Transformer& model, policies::Granularity granularity, policies::Positions positions,
             bool evicts_while_decoding);

    const Transformer& model() const { return *model_; }
    policies::Granularity granularity() const { return granularity_; }
    int n_rows() const { return n_rows_; }
    int n_layers() const { return static_cast<int>(layers_.size()); }

    /// Copies a layer's kept entries from its dense cache, which may be freed afterwards. Stores them whole or as the
    /// selection describes.
    /// @param later receives copies for the caller to run before the layer is read or changed, so that copies of
    /// several caches can share one call. Copies that cannot wait are made here.
    /// @throws policies::SelectionError, RunError, before anything is read, if the selection or its description is
    /// invalid, or if the cache renumbers entries that are stored in parts; RunError, which leaves the layer unusable,
    /// if a part shares numbers that no layer stores
    void compress(int layer, const policies::Selection& selection, const DenseLayer& dense,
                  std::vector<kernels::RowCopy>* later = nullptr);

    /// Stores entries whose numbers are all given by the selection, without a prompt's cache.
    /// @throws as `compress`, and RunError for entries or parts without numbers
    void hold(int layer, const policies::Selection& selection, int64_t n_tokens);

    /// Calls `edit` with the values of a row's entries as f32, (n_entries, d), and stores the edited values. The row
    /// must have only plain entries.
    void edit_values(int layer, int row, const std::function<void(std::span<float>)>& edit);

    /// Shares a dense layer without copying (for the full run). Decoded entries are added to the same memory while it
    /// has space.
    void adopt(int layer, const DenseLayer& dense, int64_t n_entries);

    /// Reserves space for `extra` more entries in every row of every layer. Does not copy if there is enough.
    void reserve(int64_t extra);

    /// Number of a row's entries, and how many of them are plain (whole keys and values). Plain entries come last.
    int64_t n_entries(int layer, int row) const;
    int64_t n_plain(int layer, int row) const { return static_cast<int64_t>(positions(layer, row).size()); }

    /// Whether the cache itself assigns positions to entries (`Positions::cache`).
    bool renumbers() const { return positions_ == policies::Positions::cache; }

    /// Keys and values of consecutive tokens in the memory of the cache's device.
    struct Tokens {
        int64_t n = 0;
        const void* keys = nullptr;  ///< d numbers each, rotated to the tokens' positions, or to the row's places if
                                     ///< the cache renumbers
        size_t key_stride = 0;       ///< in bytes
        const void* values = nullptr;
        size_t value_stride = 0;
        int64_t position = 0;  ///< position of the first token
    };
    /// Appends tokens to a row. Adds to `copies` the copies that must be made before the row is read.
    void append(int layer, int row, const Tokens& tokens, std::vector<kernels::RowCopy>& copies);

    /// Returns the memory from which attention reads the first `n_visible` plain entries of a row; a causal block hides
    /// the later ones. Entries outside the sliding window of a query at `position` are skipped.
    /// @param scratch holds rotated keys; must live as long as the view is used
    using Scratch = std::vector<at::Tensor>;
    struct RowView {
        const void* keys = nullptr;
        const void* values = nullptr;
        int64_t first = 0;      ///< number of entries that the sliding window skips
        int64_t n_entries = 0;  ///< number of visible entries
    };
    RowView view(int layer, int row, int64_t n_visible, int64_t position, int64_t sliding_window,
                 Scratch& scratch) const;

    /// Returns the keys (n, d) of a plain row's first n entries in the processor's memory, copied only if necessary.
    at::Tensor keys_on_processor(int layer, int row, int64_t n) const;

    /// Returns the first of a plain row's `n_visible` entries that a query sees through a sliding window; 0 without a
    /// window.
    /// @param position the query's position, or its place if the cache renumbers
    int64_t first_visible(int layer, int row, int64_t n_visible, int64_t position, int64_t sliding_window) const;

    /// Whether a layer stores some entries in parts instead of as whole keys and values.
    bool stores_parts(int layer) const {
        const auto& source = layers_[static_cast<size_t>(layer)];
        return !source.stored.empty() || !source.grown.rows.empty();
    }

    /// Returns a row's entries that are stored in parts. They precede the plain entries.
    std::vector<std::shared_ptr<const StoredEntries>> stored(int layer, int row) const;

    /// Returns these entries as far as a query at `position` sees them.
    std::vector<StoredEntries::Attended> stored_view(int layer, int row, int64_t position,
                                                     int64_t sliding_window) const;

    /// Returns the positions of a row's plain entries.
    std::span<const uint32_t> positions(int layer, int row) const;

    /// Describes how the given whole tokens shall be stored.
    using Describe = std::function<policies::StoredLayer(const policies::LeavingTokens&)>;

    /// Stores the layer's whole tokens as `describe` says, except the first and last ones named by `whole`. They follow
    /// the tokens that were stored in this way before.
    /// @param n_tokens number of prompt tokens and decoded tokens
    /// @throws policies::SelectionError if the description is invalid; RunError if its kind differs from earlier ones,
    /// if rows hold different tokens, or if the cache renumbers entries. The layer is then unusable.
    void store_others(int layer, const policies::WholeTokens& whole, int64_t n_tokens, const Describe& describe);

    /// Replaces a layer's entries that are stored in parts by the whole keys and values that they represent.
    /// @throws RunError for merged entries
    void make_whole(int layer);

    /// Returns all entries of a layer.
    /// @throws RunError if rows hold different entries or the cache renumbers them
    HeldLayer held(int layer) const;

    /// Replaces a layer's entries. The last n_plain entries of `held` are the layer's present plain entries and stay
    /// whole.
    void hold_merged(int layer, const HeldLayer& held, int64_t n_plain);

    /// Queries that are stored with a layer for its policy, in the model's type.
    std::vector<char>& queries(int layer) { return layers_[static_cast<size_t>(layer)].queries; }

    /// Removes plain entries from a row.
    /// @param entries ascending indices
    void erase(int layer, int row, std::span<const uint32_t> entries);

    /// Returns the bytes of keys and values in a row or a layer, including padding, without reserved space.
    size_t row_bytes(int layer, int row) const;
    size_t layer_bytes(int layer) const;

    /// The lengths of all rows, for returning to them after decoding. Rows that lose entries while decoding must be
    /// cloned instead.
    using Mark = std::vector<std::vector<int64_t>>;
    Mark mark() const;
    void rewind(const Mark& mark);

    /// Returns a copy with its own buffers and space for `extra` more entries in every row.
    RunCache clone(int64_t extra) const;

 private:
    /// Tokens that were whole at first and are now stored in parts. No other cache shares them.
    struct Grown {
        std::vector<std::shared_ptr<StoredEntries>> rows;  // (R); empty if there are none
        std::vector<std::shared_ptr<StoredBlock>> blocks;
    };
    struct Layer {
        // Plain entries
        at::Tensor keys, values;        // flat: entries of row r start at begin[r] * d
        std::vector<int64_t> begin;     // (R) index of each row's first entry
        std::vector<int64_t> capacity;  // (R) in entries
        int64_t room = 0;               // reserved entries in each row's capacity
        std::vector<std::vector<uint32_t>>
            positions;  // (R) positions of each row's entries; the size is the row's length
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
    /// Allocates packed space for whole entries at these positions.
    Layer& allocate(int layer, const std::vector<std::vector<uint32_t>>& rows);
    void compress_whole(int layer, const std::vector<std::vector<uint32_t>>& rows, const DenseLayer& dense,
                        std::vector<kernels::RowCopy>* later = nullptr);
    Layer packed(const Layer& layer, int64_t extra) const;
    void turn_keys(Layer& layer, int row, int64_t first, std::span<const int64_t> by) const;
    /// Rotates vectors (by, d) on the cache's device.
    void turn(void* keys, std::span<const int64_t> by) const;
    /// Describes a copy of n entries between two arrays: the entries from `first` on, or those listed in `rows`.
    kernels::RowCopy copy_of(const at::Tensor& from, int64_t first, const at::Tensor& to, int64_t to_first, int64_t n,
                             const uint32_t* rows = nullptr) const;
    size_t entry_bytes() const;
    size_t stored_bytes(int layer, int row) const;
    size_t block_bytes(int layer) const;
    void require_processor() const;
    /// Stores what the selection describes.
    /// @param dense nullptr if all parts have numbers
    void store(int layer, const policies::StoredLayer& described, const DenseLayer* dense);
    StoredSource source_of(int layer, const policies::StoredLayer& described) const;
    std::vector<float> turned_back(std::vector<float> keys, std::span<const uint32_t> positions) const;
    void require_growable(int layer, const policies::StoredLayer& described,
                          const std::vector<uint32_t>& positions) const;
    void grow(int layer, const policies::StoredLayer& described);
    /// Releases memory of the layer's plain entries if most of it is unused.
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
