#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/cache/stored_entries.h"
#include "engine/model/transformer.h"
#include "policies/api/further_interfaces.h"
#include "policies/api/stored_layer.h"

namespace kvscope::engine {

[[nodiscard]] inline char* data_pointer(const at::Tensor& tensor) { return static_cast<char*>(tensor.data_ptr()); }

/// All entries of a layer. Every row has the same entries in the same order.
struct HeldLayer {
    at::Tensor keys, values;  ///< (G, n, d) in the model's type: keys after RoPE, values summed over an entry's tokens
    std::vector<float> masses;        ///< (n)
    std::vector<uint32_t> positions;  ///< (n)
};

/// Compressed cache of one run: kept prompt entries and decoded tokens. Each layer has R rows of different lengths, one
/// for each KV head or each query head, depending on the granularity.
class RunCache {
 public:
    /// @param model on the device of the entries. Merged entries and entries in parts require the processor.
    RunCache(const Transformer& model, policies::Granularity granularity, policies::Positions positions,
             bool evicts_while_decoding);

    [[nodiscard]] const Transformer& model() const { return *model_; }
    [[nodiscard]] policies::Granularity granularity() const { return granularity_; }
    [[nodiscard]] int n_rows() const { return n_rows_; }
    [[nodiscard]] int n_layers() const { return static_cast<int>(layers_.size()); }

    /// Copies a layer's kept entries from its dense cache, whole or in parts as the selection describes.
    /// @param later receives the copies, which the caller must make before the layer is used
    /// @throws policies::SelectionError or RunError for an invalid selection, before the layer changes; RunError if no
    /// layer stores the shared numbers of a part, after which the layer is unusable
    void compress(int layer, const policies::Selection& selection, const DenseLayer& dense,
                  std::vector<kernels::RowCopy>* later = nullptr);

    /// Stores a selection that contains its entries' numbers. @throws as compress(); RunError if numbers are missing
    void hold(int layer, const policies::Selection& selection, int64_t n_tokens);

    /// Passes a row's values, (n_entries, d) f32, to `edit` and stores the result. All entries must be whole.
    void edit_values(int layer, int row, const std::function<void(std::span<float>)>& edit);

    /// Uses a dense layer without copying it (for the full run). Decoded entries fill its free space.
    void adopt(int layer, const DenseLayer& dense, int64_t n_entries);

    void reserve(int64_t extra);

    /// Returns the number of a row's entries. Plain (whole) entries come last.
    [[nodiscard]] int64_t n_entries(int layer, int row) const;
    [[nodiscard]] int64_t n_plain(int layer, int row) const {
        return static_cast<int64_t>(positions(layer, row).size());
    }

    [[nodiscard]] bool renumbers() const { return positions_ == policies::Positions::cache; }

    struct Tokens {
        int64_t n = 0;
        const void* keys = nullptr;  ///< d numbers each, after RoPE
        size_t key_stride = 0;       ///< in bytes
        const void* values = nullptr;
        size_t value_stride = 0;
        int64_t position = 0;
    };
    /// Appends tokens to a row. The caller must perform `copies` before the row is read.
    void append(int layer, int row, const Tokens& tokens, std::vector<kernels::RowCopy>& copies);

    using Scratch = std::vector<at::Tensor>;
    struct RowView {
        const void* keys = nullptr;
        const void* values = nullptr;
        int64_t first = 0;      ///< number of entries outside the sliding window
        int64_t n_entries = 0;  ///< number of visible entries
    };
    /// Returns the entries that a query at `position` sees among the first `n_visible` plain entries of a row.
    [[nodiscard]] RowView view(int layer, int row, int64_t n_visible, int64_t position, int64_t sliding_window,
                               Scratch& scratch) const;

    /// Returns the keys (n, d) of a row's first n plain entries, in the processor's memory.
    [[nodiscard]] at::Tensor keys_on_processor(int layer, int row, int64_t n) const;

    /// Returns the first entry that a query sees among the first `n_visible` plain entries. A window of 0 includes all.
    /// @param position position of the query, or its index in the row if the cache renumbers entries
    [[nodiscard]] int64_t first_visible(int layer, int row, int64_t n_visible, int64_t position,
                                        int64_t sliding_window) const;

    [[nodiscard]] bool stores_parts(int layer) const {
        const auto& source = layers_[static_cast<size_t>(layer)];
        return !source.stored.empty() || !source.grown.rows.empty();
    }

    /// Returns a row's entries that are stored in parts. They precede the plain entries.
    [[nodiscard]] std::vector<std::shared_ptr<const StoredEntries>> stored(int layer, int row) const;

    [[nodiscard]] std::vector<StoredEntries::Attended> stored_view(int layer, int row, int64_t position,
                                                                   int64_t sliding_window) const;

    [[nodiscard]] std::span<const uint32_t> positions(int layer, int row) const;

    using Describe = std::function<policies::StoredLayer(const policies::ReducedTokens&)>;

    /// Stores a layer's plain tokens in parts as `describe` says. The first and last tokens in `whole` stay plain.
    /// @throws policies::SelectionError for an invalid description; RunError if its kind differs from earlier
    /// descriptions, rows hold different tokens, or the cache renumbers entries. The layer is then unusable.
    void store_others(int layer, const policies::WholeTokens& whole, int64_t n_tokens, const Describe& describe);

    /// Reconstructs whole keys and values of all entries stored in parts. @throws RunError for merged entries
    void make_whole(int layer);

    /// @throws RunError if rows hold different entries or the cache renumbers them
    [[nodiscard]] HeldLayer held(int layer) const;

    /// Replaces a layer's entries. The last n_plain entries of `held` do not change.
    void hold_merged(int layer, const HeldLayer& held, int64_t n_plain);

    /// Queries that a layer stores for its policy, in the model's type.
    [[nodiscard]] std::vector<char>& queries(int layer) { return layers_[static_cast<size_t>(layer)].queries; }

    /// Removes plain entries from a row. @param entries ascending indices
    void erase(int layer, int row, std::span<const uint32_t> entries);

    /// Returns the bytes of a row's or layer's keys and values. Counts padding, but not reserved space.
    [[nodiscard]] size_t row_bytes(int layer, int row) const;
    [[nodiscard]] size_t layer_bytes(int layer) const;

    /// Lengths of all rows. A cache can be rewound to a mark if no entry was evicted after mark().
    using Mark = std::vector<std::vector<int64_t>>;
    [[nodiscard]] Mark mark() const;
    void rewind(const Mark& mark);

    [[nodiscard]] RunCache clone(int64_t extra) const;

 private:
    /// Tokens that were plain and are now stored in parts. Only this cache uses them.
    struct Grown {
        std::vector<std::shared_ptr<StoredEntries>> rows;  // (R); empty if there are none
        std::vector<std::shared_ptr<StoredBlock>> blocks;
    };
    struct Layer {
        at::Tensor keys, values;                       // flat; entries of row r start at begin[r] * d
        std::vector<int64_t> begin;                    // (R) index of each row's first entry
        std::vector<int64_t> capacity;                 // (R) in entries
        int64_t room = 0;                              // reserved entries per row
        std::vector<std::vector<uint32_t>> positions;  // (R) positions of each row's entries
        std::vector<std::vector<std::shared_ptr<const StoredEntries>>> stored;
        std::vector<std::shared_ptr<const StoredBlock>> blocks;  // shared with other rows or layers
        Grown grown;
        std::vector<char> queries;

        void allocate(std::vector<int64_t> capacities, int64_t head_dim, const at::TensorOptions& options);
    };
    // Compares owners, not addresses, because a new description can get the address of a deleted description.
    using Blocks =
        std::map<std::weak_ptr<const policies::StoredBlock>, std::shared_ptr<const StoredBlock>, std::owner_less<>>;

    void require_holdable(int layer, const policies::Selection& selection, int64_t n_tokens) const;
    Layer& allocate(int layer, const std::vector<std::vector<uint32_t>>& rows);
    void compress_whole(int layer, const std::vector<std::vector<uint32_t>>& rows, const DenseLayer& dense,
                        std::vector<kernels::RowCopy>* later = nullptr);
    [[nodiscard]] Layer packed(const Layer& layer, int64_t extra) const;
    void turn_keys(Layer& layer, int row, int64_t first, std::span<const int64_t> by) const;
    void turn(void* keys, std::span<const int64_t> by) const;
    [[nodiscard]] kernels::RowCopy copy_of(const at::Tensor& from, int64_t first, const at::Tensor& to,
                                           int64_t to_first, int64_t n, const uint32_t* rows = nullptr) const;
    [[nodiscard]] size_t entry_bytes() const;
    [[nodiscard]] size_t stored_bytes(int layer, int row) const;
    [[nodiscard]] size_t block_bytes(int layer) const;
    void require_processor() const;
    void store(int layer, const policies::StoredLayer& described, const DenseLayer* dense);
    [[nodiscard]] StoredSource source_of(int layer, const policies::StoredLayer& described) const;
    [[nodiscard]] std::vector<float> turned_back(std::vector<float> keys, std::span<const uint32_t> positions) const;
    void require_growable(int layer, const policies::StoredLayer& described,
                          const std::vector<uint32_t>& positions) const;
    void grow(int layer, const policies::StoredLayer& described);
    void shrink(int layer);
    void drop_unused_blocks();
    void detach_grown();

    const Transformer* model_;
    policies::Granularity granularity_;
    policies::Positions positions_;
    bool
        unrotated_;  // keys are stored without rotation and rotated when read, because evictions change their positions
    int n_rows_;
    std::vector<Layer> layers_;
    Blocks blocks_;  // blocks of all stored layers
};

}  // namespace kvscope::engine
