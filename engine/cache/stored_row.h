#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/attention_decode.h"
#include "kernels/types.h"
#include "policies/interface/stored_layer.h"

namespace kvscope::engine {

/// Copies channels of a vector, each of `element` bytes; all `head_dim` where `channels` is empty.
/// @returns behind the last one that was written
char* copy_channels(const char* vector, int head_dim, std::span<const uint16_t> channels, size_t element, char* to);

/// The keys or the values of entries as a cache holds them: numbers in the model's type.
class StoredNumbers {
 public:
    /// @param dense (capacity, d) the prompt's own, in the model's type
    StoredNumbers(const policies::StoredVectors& vectors, std::span<const uint32_t> positions, const char* dense,
                  int head_dim, kernels::DType dtype);

    /// The numbers are vectors that can be read where they lie: (n, width).
    bool is_plain() const { return parts_.size() == 1 && !parts_[0].map; }
    const void* data() const { return parts_[0].numbers.data(); }
    int width() const { return parts_[0].width; }
    /// Of a plain one: which channels the numbers are; empty: all.
    std::span<const uint16_t> channels() const { return parts_[0].channels; }

    /// Writes vectors [begin, end), (end - begin, d).
    void read(int64_t begin, int64_t end, float* out) const;
    size_t bytes() const;

 private:
    struct Part {
        int width = 0;
        std::vector<char> numbers;  ///< (n, width)
        std::vector<uint16_t> channels;
        std::shared_ptr<const policies::Matrix> map;
    };

    int head_dim_;
    kernels::DType dtype_;
    std::vector<Part> parts_;
};

/// Entries of a row that are stored alike. They never change: copies of a cache share them.
class StoredEntries {
 public:
    /// @param keys, values of the row's KV head in the dense cache, (capacity, d)
    StoredEntries(const policies::StoredEntries& entries, const char* keys, const char* values, int head_dim,
                  kernels::DType dtype);

    int64_t size() const { return static_cast<int64_t>(positions_.size()); }
    std::span<const uint32_t> positions() const { return positions_; }
    float mass(int64_t entry) const { return masses_.empty() ? 1.0f : masses_[static_cast<size_t>(entry)]; }
    /// Writes keys and values of entries [begin, end), (end - begin, d) each; channels that are not stored are 0.
    void read(int64_t begin, int64_t end, float* keys, float* values) const {
        keys_.read(begin, end, keys);
        values_.read(begin, end, values);
    }
    size_t bytes() const { return keys_.bytes() + values_.bytes() + masses_.size() * sizeof(float); }

    /// A row of `attention_decode` over the entries from `first` on, without queries and output. Where keys are stored
    /// on some channels, the queries have to be, too: `key_channels`, empty for all.
    struct Attended {
        kernels::DecodeRow row;
        std::span<const uint16_t> key_channels;
        std::unique_ptr<const kernels::DecodeEntries> entries;  ///< what the row refers to, if anything
    };
    Attended from(int64_t first) const;

 private:
    std::vector<uint32_t> positions_;
    std::vector<float> masses_;
    int head_dim_;
    kernels::DType dtype_;
    StoredNumbers keys_, values_;
};

}  // namespace kvscope::engine
