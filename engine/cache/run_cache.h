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

/// All entries of a layer, the same in every row, one after the other.
struct HeldLayer {
    at::Tensor keys, values;  ///< (G, n, d) of the model's type, keys after RoPE, values summed over an entry's tokens
    std::vector<float> masses;        ///< (n)
    std::vector<uint32_t> positions;  ///< (n)
};

/// What one run keeps of the prompt, and what it decoded since: per layer R ragged rows (a KV head each, or a query
/// head each where the run's granularity is that), every row packed and of its own length. Compressing gathers once;
/// the buffers hold the kept entries and nothing else until room for decoding is reserved.
class RunCache {
 public:
    /// @param model on the device where entries are to lie. Entries that are stored in parts or merged are the
    ///              processor's alone (Transformer::on_processor).
    RunCache(const Transformer& model, policies::Granularity granularity, policies::Positions positions,
             bool evicts_while_decoding);

    const Transformer& model() const { return *model_; }
    policies::Granularity granularity() const { return granularity_; }
    int n_rows() const { return n_rows_; }
    int n_layers() const { return static_cast<int>(layers_.size()); }

    /// Takes the kept entries of a layer out of its dense cache, which may be freed afterwards: whole, or stored as the
    /// selection describes.
    /// @throws policies::SelectionError, RunError before anything is read for a selection that it does not hold, for a
    ///         description that does not hold together, and for one in a cache that renumbers its entries; RunError,
    ///         which leaves the layer of no use, for one that shares what no layer stores
    /// @param later receives copies that are left to the caller, who has those of several caches made in one call,
    ///              before anything reads or changes the layer; what cannot be left is copied here
    void compress(int layer, const policies::Selection& selection, const DenseLayer& dense,
                  std::vector<kernels::RowCopy>* later = nullptr);

    /// Holds entries that the selection gives whole, numbers and all: nothing is taken from a prompt's cache.
    /// @throws as above, and RunError for a part without numbers or an entry that is not given
    void hold(int layer, const policies::Selection& selection, int64_t n_tokens);

    /// Hands the values of a row's entries (n_entries, d) over as f32 and takes back what became of them. Plain rows
    /// only.
    void edit_values(int layer, int row, const std::function<void(std::span<float>)>& edit);

    /// Shares a dense layer whole (the full run): nothing is copied, decoded entries go behind the prompt's, as far as
    /// the layer has room.
    void adopt(int layer, const DenseLayer& dense, int64_t n_entries);

    /// Makes room for `extra` more entries in every row of every layer; nothing is copied where there is that much.
    void reserve(int64_t extra);

    /// Entries of a row, and those of them that are whole keys and values, the last ones.
    int64_t n_entries(int layer, int row) const;
    int64_t n_plain(int layer, int row) const { return static_cast<int64_t>(positions(layer, row).size()); }

    /// The position a row's next entry gets, where that is the cache's own business (`Positions::cache`).
    bool renumbers() const { return positions_ == policies::Positions::cache; }

    /// Keys and values of successive tokens in memory of the cache's device.
    struct Tokens {
        int64_t n = 0;
        const void* keys = nullptr;  ///< d numbers each, post-RoPE of their positions (of the row's places, renumbered)
        size_t key_stride = 0;       ///< bytes
        const void* values = nullptr;
        size_t value_stride = 0;
        int64_t position = 0;  ///< of the first one
    };
    /// Appends them to a row. What is still to be copied before the row is read is added to `copies`.
    void append(int layer, int row, const Tokens& tokens, std::vector<kernels::RowCopy>& copies);

    /// What a row's first `n_visible` plain entries are read from (all those before the tokens that a causal block
    /// still hides); `sliding_window` drops the entries too far behind `position`. Scratch of rotated rows lives in
    /// `scratch` until the call is over.
    using Scratch = std::vector<at::Tensor>;
    struct RowView {
        const void* keys = nullptr;
        const void* values = nullptr;
        int64_t first = 0;      ///< entries skipped because of the sliding window
        int64_t n_entries = 0;  ///< visible ones
    };
    RowView view(int layer, int row, int64_t n_visible, int64_t position, int64_t sliding_window,
                 Scratch& scratch) const;

    /// Keys (n, d) of a plain row's first n entries in the processor's memory: those that are there, or copies.
    at::Tensor keys_on_processor(int layer, int row, int64_t n) const;

    /// The first of a plain row's first `n_visible` entries that a query at `position` (at the row's place, where the
    /// cache renumbers) sees through a sliding window; 0 where that is 0.
    int64_t first_visible(int layer, int row, int64_t n_visible, int64_t position, int64_t sliding_window) const;

    /// Whether some of a layer's entries are stored in another way than as whole keys and values.
    bool stores_parts(int layer) const {
        const auto& source = layers_[static_cast<size_t>(layer)];
        return !source.stored.empty() || !source.grown.rows.empty();
    }

    /// Those entries, ahead of the plain ones; none where there are none.
    std::vector<std::shared_ptr<const StoredEntries>> stored(int layer, int row) const;

    /// The same as far as a query at `position` sees them.
    std::vector<StoredEntries::Attended> stored_view(int layer, int row, int64_t position,
                                                     int64_t sliding_window) const;

    /// Of the plain entries.
    std::span<const uint32_t> positions(int layer, int row) const;

    /// What a policy says of tokens that are whole no longer.
    using Describe = std::function<policies::StoredLayer(const policies::LeavingTokens&)>;

    /// Stores the layer's whole tokens but for the first and the last ones as they are described, behind what was
    /// stored of such tokens before.
    /// @param n_tokens of the prompt and decoded ones
    /// @throws policies::SelectionError for a description that does not hold together; RunError for one of another kind
    ///         than those before it, for rows that hold different tokens, and in a cache that renumbers its entries.
    ///         The layer is of no use then.
    void store_others(int layer, const policies::WholeTokens& whole, int64_t n_tokens, const Describe& describe);

    /// Turns what the layer stores in parts into whole keys and values, as the parts give them.
    /// @throws RunError for merged entries
    void make_whole(int layer);

    /// @throws RunError where rows hold different entries, and in a cache that renumbers them
    HeldLayer held(int layer) const;

    /// Holds these in place of what there is, the last n_plain of them as the whole entries that they are already.
    void hold_merged(int layer, const HeldLayer& held, int64_t n_plain);

    /// Queries that are kept with a layer for its policy, of the model's type.
    std::vector<char>& queries(int layer) { return layers_[static_cast<size_t>(layer)].queries; }

    /// Drops plain entries (ascending storage indices) of a row.
    void erase(int layer, int row, std::span<const uint32_t> entries);

    /// Bytes of K and V really held by a row or a layer, padding included, without the room for entries to come.
    size_t row_bytes(int layer, int row) const;
    size_t layer_bytes(int layer) const;

    /// The lengths of all rows, to come back to after decoding something. Rows that lose entries meanwhile are cloned
    /// first instead.
    using Mark = std::vector<std::vector<int64_t>>;
    Mark mark() const;
    void rewind(const Mark& mark);

    /// A copy with buffers of its own and with room for `extra` more entries in every row.
    RunCache clone(int64_t extra) const;

 private:
    /// What is stored in parts of tokens that were whole at first: no other cache shares it.
    struct Grown {
        std::vector<std::shared_ptr<StoredEntries>> rows;  // (R); empty where there are none
        std::vector<std::shared_ptr<StoredBlock>> blocks;
    };
    struct Layer {
        // The plain entries.
        at::Tensor keys, values;                       // flat: row r's entries start at begin[r] * d
        std::vector<int64_t> begin;                    // (R) in entries
        std::vector<int64_t> capacity;                 // (R)
        int64_t room = 0;                              // entries of each row's capacity that are for those to come
        std::vector<std::vector<uint32_t>> positions;  // (R) of each entry, its size is the row's length
        // (R) those ahead of them; empty where there are none.
        std::vector<std::vector<std::shared_ptr<const StoredEntries>>> stored;
        std::vector<std::shared_ptr<const StoredBlock>> blocks;  // stored for several rows, or for other layers
        Grown grown;
        std::vector<char> queries;
    };
    // By identity: a description that is gone is not taken for a later one at its address.
    using Blocks =
        std::map<std::weak_ptr<const policies::StoredBlock>, std::shared_ptr<const StoredBlock>, std::owner_less<>>;

    void require_holdable(int layer, const policies::Selection& selection, int64_t n_tokens) const;
    /// Room for whole entries at these positions, packed.
    Layer& allocate(int layer, const std::vector<std::vector<uint32_t>>& rows);
    void compress_whole(int layer, const std::vector<std::vector<uint32_t>>& rows, const DenseLayer& dense,
                        std::vector<kernels::RowCopy>* later = nullptr);
    Layer packed(const Layer& layer, int64_t extra) const;
    void turn_keys(Layer& layer, int row, int64_t first, std::span<const int64_t> by) const;
    /// Turns vectors (by, d) of the cache's device.
    void turn(void* keys, std::span<const int64_t> by) const;
    /// Entries of one array to another; of those from `first` on, all or the ones in `rows`.
    kernels::RowCopy copy_of(const at::Tensor& from, int64_t first, const at::Tensor& to, int64_t to_first, int64_t n,
                             const uint32_t* rows = nullptr) const;
    size_t entry_bytes() const;
    size_t stored_bytes(int layer, int row) const;
    size_t block_bytes(int layer) const;
    void require_processor() const;
    /// Stores what the selection describes. @param dense nullptr: every part has numbers
    void store(int layer, const policies::StoredLayer& described, const DenseLayer* dense);
    StoredSource source_of(int layer, const policies::StoredLayer& described) const;
    std::vector<float> turned_back(std::vector<float> keys, std::span<const uint32_t> positions) const;
    void require_growable(int layer, const policies::StoredLayer& described,
                          const std::vector<uint32_t>& positions) const;
    void grow(int layer, const policies::StoredLayer& described);
    /// Gives back what the layer's whole entries have left, where that is most of their room.
    void shrink(int layer);
    void drop_unused_blocks();
    /// What grows becomes this cache's own.
    void detach_grown();

    const Transformer* model_;
    policies::Granularity granularity_;
    policies::Positions positions_;
    bool unrotated_;  // keys are stored at position 0 and rotated when read, since evictions move them again and again
    int n_rows_;
    std::vector<Layer> layers_;
    Blocks blocks_;  // of the layers so far
};

}  // namespace kvscope::engine
