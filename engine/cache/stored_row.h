#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "engine/model/rotation_table.h"
#include "kernels/attention_decode.h"
#include "kernels/stored_numbers.h"
#include "kernels/types.h"
#include "policies/interface/stored_layer.h"

namespace kvscope::engine {

/// Copies channels of a vector, each of `element` bytes; all `head_dim` where `channels` is empty.
/// @returns behind the last one that was written
char* copy_channels(const char* vector, int head_dim, std::span<const uint16_t> channels, size_t element, char* to);

/// Numbers of entries as a cache holds them, in the model's type.
class StoredBlock {
 public:
    StoredBlock(int width, std::span<const float> numbers, kernels::DType dtype);
    /// Channels of whole vectors at these positions; all where none are named.
    /// @param dense (capacity, d) in the model's type
    StoredBlock(std::span<const uint16_t> channels, std::span<const uint32_t> positions, const char* dense,
                int head_dim, kernels::DType dtype);

    int width() const { return width_; }
    int64_t n_entries() const {
        return static_cast<int64_t>(numbers_.size() / (static_cast<size_t>(width_) * kernels::size_of(dtype_)));
    }
    size_t bytes() const { return numbers_.size(); }
    /// Further entries behind these, (n, width).
    void append(std::span<const float> numbers);
    /// Of entries [begin, end), `n_columns` numbers from `first_column` on.
    kernels::StoredNumbers numbers(int64_t begin, int64_t end, int first_column, int n_columns) const;

 private:
    int width_;
    kernels::DType dtype_;
    std::vector<char> numbers_;
};

/// What stored entries are made with.
struct StoredSource {
    int head_dim = 0;
    kernels::DType dtype = kernels::DType::f32;
    const char* keys = nullptr;  ///< of the row's KV head in the dense cache, (capacity, d); nullptr: there is none
    const char* values = nullptr;
    /// What the cache stores for a block of the description. @throws RunError where it has none
    std::function<std::shared_ptr<const StoredBlock>(const std::shared_ptr<const policies::StoredBlock>&)> block{};
    Rotation rotation{};  ///< of positions 0, 1, … as far as keys are stored before RoPE
};

/// Blocks that are copied, with their copies.
using CopiedBlocks = std::map<const StoredBlock*, std::shared_ptr<const StoredBlock>>;

/// The keys or the values of entries.
class StoredVectors {
 public:
    StoredVectors(const policies::StoredVectors& vectors, std::span<const uint32_t> positions, const char* dense,
                  const StoredSource& source);

    /// The numbers are vectors that can be read where they lie.
    bool is_plain() const {
        return !before_rope_ && offset_.empty() && parts_.size() == 1 && !parts_[0].map && parts_[0].scales.empty();
    }
    /// Of a plain one: entries from `first` on, and which channels the numbers are; empty: all.
    kernels::StoredNumbers plain(int64_t first, int64_t end) const { return parts_[0].numbers(first, end); }
    std::span<const uint16_t> channels() const { return parts_[0].channels; }

    /// Writes vectors [begin, end), (end - begin, d); channels that are not stored are 0.
    void read(int64_t begin, int64_t end, float* out) const;

    /// As kernels::DecodeEntries::sum_values. What a map is multiplied by is summed first.
    void sum(int64_t begin, int64_t end, const float* weights, int n_queries, float* scratch, float* out) const;
    size_t scratch_floats(int n_queries) const;

    /// Without what is stored for several, and without maps.
    size_t own_bytes() const;
    void add_maps(std::set<const policies::Matrix*>& maps) const;

    /// Whether these could go behind: as many parts, each of the same width, channels and map, and shared alike.
    bool is_like(const policies::StoredVectors& vectors, const StoredSource& source) const;
    /// Entries that are described like these, numbers and all, behind them.
    void append(const policies::StoredVectors& vectors, std::span<const uint32_t> positions,
                const StoredSource& source);
    /// Makes the numbers this copy's own, those of `blocks` their copies.
    void detach(const CopiedBlocks& blocks);

 private:
    struct Part {
        int width = 0, first_column = 0;
        std::shared_ptr<const StoredBlock> block;
        std::shared_ptr<StoredBlock> own;  ///< the same where it is not shared
        std::vector<uint16_t> channels;
        std::shared_ptr<const policies::Matrix> map;
        std::vector<char> scales;  ///< (n) in the model's type

        kernels::StoredNumbers numbers(int64_t begin, int64_t end) const {
            return block->numbers(begin, end, first_column, width);
        }
    };

    float scale_of(const Part& part, int64_t entry) const;
    void add_vectors(const Part& part, int64_t begin, int64_t end, float* out) const;
    void add_offset(int64_t n, const float* weights, int n_queries, float* out) const;
    void turn(int64_t begin, int64_t end, float* keys) const;

    int head_dim_;
    kernels::DType dtype_;
    bool before_rope_;
    Rotation rotation_;
    std::vector<uint32_t> positions_;  ///< where keys are turned to theirs
    std::vector<Part> parts_;
    std::vector<float> offset_;  ///< (d) or empty
};

/// Entries of a row that are stored alike. Those of the prompt never change: copies of a cache share them.
class StoredEntries {
 public:
    StoredEntries(const policies::StoredEntries& entries, const StoredSource& source);

    int64_t size() const { return static_cast<int64_t>(positions_.size()); }
    std::span<const uint32_t> positions() const { return positions_; }
    float mass(int64_t entry) const { return masses_.empty() ? 1.0f : masses_[static_cast<size_t>(entry)]; }
    /// Writes keys and values of entries [begin, end), (end - begin, d) each; channels that are not stored are 0.
    void read(int64_t begin, int64_t end, float* keys, float* values) const {
        keys_.read(begin, end, keys);
        values_.read(begin, end, values);
    }
    /// Without what is stored for several, and without maps.
    size_t own_bytes() const { return keys_.own_bytes() + values_.own_bytes() + masses_.size() * sizeof(float); }

    void add_maps(std::set<const policies::Matrix*>& maps) const {
        keys_.add_maps(maps);
        values_.add_maps(maps);
    }

    /// A row of `attention_decode` over the entries from `first` on, without queries and output. Where keys are stored
    /// on some channels, the queries have to be, too: `key_channels`, empty for all.
    struct Attended {
        kernels::DecodeRow row;
        std::span<const uint16_t> key_channels;
        std::unique_ptr<const kernels::DecodeEntries> entries;  ///< what the row refers to, if anything
    };
    Attended from(int64_t first) const;

    /// Puts entries behind these, if they are described like these. @returns whether they are
    bool append(const policies::StoredEntries& entries, const StoredSource& source);
    /// With numbers of its own, for entries that are still appended to.
    std::shared_ptr<StoredEntries> copy(const CopiedBlocks& blocks) const;

 private:
    std::vector<uint32_t> positions_;
    std::vector<float> masses_;
    StoredVectors keys_, values_;
};

}  // namespace kvscope::engine
