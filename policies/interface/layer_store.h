#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kvscope::policies {

/// What a policy that changes the representation (channels, latents, merged entries) stores of one layer's cache, in
/// place of the engine's plain ragged rows. Rows are KV heads. All values f32 at this border.
class LayerStore {
 public:
    virtual ~LayerStore() = default;

    /// Entries that attention sees in a row.
    virtual int64_t n_entries(int row) const = 0;

    /// Bytes really held by a row, padding included.
    virtual size_t bytes(int row) const = 0;

    /// One decoded token: its post-RoPE key and its value, each (d).
    virtual void append(int row, const float* key, const float* value) = 0;

    /// Writes the row's keys and values, each (n_entries, d), as attention uses them, and, where the store has merged
    /// entries, their cardinalities (n_entries): o = sum exp(e_i) v_i / sum n_i exp(e_i). Plain entries have 1.
    virtual void read(int row, float* keys, float* values, float* cardinalities) const = 0;

    /// A copy with a storage of its own, so that one compressed cache can answer several questions.
    virtual std::unique_ptr<LayerStore> clone() const = 0;
};

}  // namespace kvscope::policies
