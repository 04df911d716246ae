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
#include "kernels/stored_number_products.h"
#include "kernels/types.h"
#include "policies/api/stored_layer.h"

namespace kvscope::engine {

/// Converts n numbers of a model's type, f32 or bf16, to f32.
void to_floats(const char* from, kernels::DType dtype, int64_t n, float* to);
void from_floats(const float* from, kernels::DType dtype, int64_t n, char* to);
/// Copies the given channels of a vector. An empty list means all channels. @returns the end of the written bytes
[[nodiscard]] char* copy_channels(const char* vector, int head_dim, std::span<const uint16_t> channels, size_t element,
                                  char* to);

/// Numbers of stored entries, (n, width) in the model's type.
class StoredBlock {
 public:
    StoredBlock(int width, std::span<const float> numbers, kernels::DType dtype);
    /// Copies vectors of `dense` (capacity, d) at these positions: the given channels, or all if `channels` is empty.
    StoredBlock(std::span<const uint16_t> channels, std::span<const uint32_t> positions, const char* dense,
                int head_dim, kernels::DType dtype);

    [[nodiscard]] int width() const { return width_; }
    [[nodiscard]] int64_t n_entries() const {
        return static_cast<int64_t>(numbers_.size() / (static_cast<size_t>(width_) * kernels::size_of(dtype_)));
    }
    [[nodiscard]] size_t bytes() const { return numbers_.size(); }
    void append(std::span<const float> numbers);
    /// Returns columns [first_column, first_column + n_columns) of entries [begin, end).
    [[nodiscard]] kernels::StoredNumbers numbers(int64_t begin, int64_t end, int first_column, int n_columns) const;

 private:
    int width_;
    kernels::DType dtype_;
    std::vector<char> numbers_;
};

struct StoredSource {
    int head_dim = 0;
    kernels::DType dtype = kernels::DType::f32;
    const char* keys = nullptr;  ///< (capacity, d) dense keys of the KV head, or nullptr
    const char* values = nullptr;
    /// Finds the stored copy of a policy's block. @throws RunError if there is none
    std::function<std::shared_ptr<const StoredBlock>(const std::shared_ptr<const policies::StoredBlock>&)> block{};
    Rotation rotation{};  ///< rotations of positions 0, 1, … for keys stored before RoPE
};

using CopiedBlocks = std::map<const StoredBlock*, std::shared_ptr<const StoredBlock>>;

class StoredVectors {
 public:
    StoredVectors(const policies::StoredVectors& vectors, std::span<const uint32_t> positions, const char* dense,
                  const StoredSource& source);

    /// Whether the stored numbers are the vectors themselves, which can be read directly.
    [[nodiscard]] bool is_plain() const {
        return !before_rope_ && offset_.empty() && parts_.size() == 1 && !parts_[0].map && parts_[0].scales.empty();
    }
    /// Returns the vectors of entries [first, end). Requires is_plain().
    [[nodiscard]] kernels::StoredNumbers plain(int64_t first, int64_t end) const {
        return parts_[0].numbers(first, end);
    }
    [[nodiscard]] std::span<const uint16_t> channels() const { return parts_[0].channels; }

    /// Writes the vectors of entries [begin, end), (end - begin, d), with 0 in channels that are not stored.
    void read(int64_t begin, int64_t end, float* out) const;

    /// Computes weighted sums of the vectors, as kernels::DecodeEntries::sum_values does. Maps are applied to the sums.
    void sum(int64_t begin, int64_t end, const float* weights, int n_queries, float* scratch, float* out) const;
    [[nodiscard]] size_t scratch_floats(int n_queries) const;

    [[nodiscard]] size_t own_bytes() const;
    void add_maps(std::set<const policies::Matrix*>& maps) const;

    /// Whether `vectors` has the same widths, channels, maps and shared blocks, so that append() is possible.
    [[nodiscard]] bool is_like(const policies::StoredVectors& vectors, const StoredSource& source) const;
    void append(const policies::StoredVectors& vectors, std::span<const uint32_t> positions,
                const StoredSource& source);
    /// Copies this object's own numbers, and replaces other blocks by their copies in `blocks`.
    void detach(const CopiedBlocks& blocks);

 private:
    struct Part {
        int width = 0, first_column = 0;
        std::shared_ptr<const StoredBlock> block;
        std::shared_ptr<StoredBlock> own;  ///< `block` if it is not shared; otherwise nullptr
        std::vector<uint16_t> channels;
        std::shared_ptr<const policies::Matrix> map;
        std::vector<char> scales;  ///< (n) in the model's type

        [[nodiscard]] kernels::StoredNumbers numbers(int64_t begin, int64_t end) const {
            return block->numbers(begin, end, first_column, width);
        }
    };

    [[nodiscard]] float scale_of(const Part& part, int64_t entry) const;
    void add_vectors(const Part& part, int64_t begin, int64_t end, float* out) const;
    void add_offset(int64_t n, const float* weights, int n_queries, float* out) const;
    void turn(int64_t begin, int64_t end, float* keys) const;

    int head_dim_;
    kernels::DType dtype_;
    bool before_rope_;
    Rotation rotation_;
    std::vector<uint32_t> positions_;  ///< positions for the rotation of keys
    std::vector<Part> parts_;
    std::vector<float> offset_;  ///< (d) or empty
};

/// Entries of a row whose parts have the same form. Prompt entries never change, so copies of a cache share them.
class StoredEntries {
 public:
    StoredEntries(const policies::StoredEntries& entries, const StoredSource& source);

    [[nodiscard]] int64_t size() const { return static_cast<int64_t>(positions_.size()); }
    [[nodiscard]] std::span<const uint32_t> positions() const { return positions_; }
    [[nodiscard]] float mass(int64_t entry) const {
        return masses_.empty() ? 1.0f : masses_[static_cast<size_t>(entry)];
    }
    void read(int64_t begin, int64_t end, float* keys, float* values) const {
        keys_.read(begin, end, keys);
        values_.read(begin, end, values);
    }
    [[nodiscard]] size_t own_bytes() const {
        return keys_.own_bytes() + values_.own_bytes() + masses_.size() * sizeof(float);
    }

    void add_maps(std::set<const policies::Matrix*>& maps) const {
        keys_.add_maps(maps);
        values_.add_maps(maps);
    }

    /// A row for attention_decode without queries and outputs. Queries contain `key_channels`; an empty list means all.
    struct Attended {
        kernels::DecodeRow row;
        std::span<const uint16_t> key_channels;
        std::unique_ptr<const kernels::DecodeEntries> entries;  ///< computes what `row` reads; may be nullptr
    };
    [[nodiscard]] Attended from(int64_t first) const;

    /// Appends entries that have the same description. @returns false for other entries
    [[nodiscard]] bool append(const policies::StoredEntries& entries, const StoredSource& source);
    [[nodiscard]] std::shared_ptr<StoredEntries> copy(const CopiedBlocks& blocks) const;

 private:
    std::vector<uint32_t> positions_;
    std::vector<float> masses_;
    StoredVectors keys_, values_;
};

}  // namespace kvscope::engine
