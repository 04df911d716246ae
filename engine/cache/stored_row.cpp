#include "engine/cache/stored_row.h"

#include <algorithm>
#include <cstring>

#include "kernels/bf16.h"

namespace kvscope::engine {
namespace {

using kernels::bf16;
using kernels::DType;

template <class T>
void gather(const char* dense, std::span<const uint32_t> positions, std::span<const uint16_t> channels, int head_dim,
            char* out) {
    const T* from = reinterpret_cast<const T*>(dense);
    T* to = reinterpret_cast<T*>(out);
    for (const uint32_t position : positions) {
        const T* vector = from + int64_t{position} * head_dim;
        if (channels.empty()) {
            to = std::copy_n(vector, head_dim, to);
        } else {
            for (const uint16_t channel : channels) *to++ = vector[channel];
        }
    }
}

void store(std::span<const float> numbers, DType dtype, char* out) {
    if (dtype == DType::f32) {
        std::memcpy(out, numbers.data(), numbers.size_bytes());
        return;
    }
    auto* to = reinterpret_cast<bf16*>(out);
    for (const float number : numbers) *to++ = kernels::bf16_from_float(number);
}

/// Adds a matrix times one entry's numbers, several rows at once: their sums do not wait for one another.
template <class T>
void add_product(const policies::Matrix& map, const T* numbers, float* out) {
    constexpr int at_once = 8;
    const int width = map.n_columns;
    for (int first = 0; first < map.n_rows; first += at_once) {
        const int n = std::min(at_once, map.n_rows - first);
        const float* rows = map.numbers.data() + int64_t{first} * width;
        float sums[at_once] = {};
        if (n == at_once) {
            for (int i = 0; i < width; ++i) {
                const float number = kernels::to_float(numbers[i]);
                for (int c = 0; c < at_once; ++c) sums[c] += rows[int64_t{c} * width + i] * number;
            }
        } else {
            for (int c = 0; c < n; ++c)
                for (int i = 0; i < width; ++i) sums[c] += rows[int64_t{c} * width + i] * kernels::to_float(numbers[i]);
        }
        for (int c = 0; c < n; ++c) out[first + c] += sums[c];
    }
}

/// Adds a part's share of one vector.
template <class T>
void add_part(const T* numbers, int width, std::span<const uint16_t> channels, const policies::Matrix* map,
              float* out) {
    if (map) {
        add_product(*map, numbers, out);
    } else if (channels.empty()) {
        for (int c = 0; c < width; ++c) out[c] += kernels::to_float(numbers[c]);
    } else {
        for (int i = 0; i < width; ++i) out[channels[static_cast<size_t>(i)]] += kernels::to_float(numbers[i]);
    }
}

/// Entries of which keys or values are worked out.
class WorkedOut final : public kernels::DecodeEntries {
 public:
    WorkedOut(const StoredNumbers& keys, const StoredNumbers& values, int64_t first)
        : keys_(keys), values_(values), first_(first) {}
    void read(int64_t begin, int64_t end, float* keys, float* values) const override {
        keys_.read(first_ + begin, first_ + end, keys);
        values_.read(first_ + begin, first_ + end, values);
    }

 private:
    const StoredNumbers& keys_;
    const StoredNumbers& values_;
    int64_t first_;
};

}  // namespace

StoredNumbers::StoredNumbers(const policies::StoredVectors& vectors, std::span<const uint32_t> positions,
                             const char* dense, int head_dim, DType dtype)
    : head_dim_(head_dim), dtype_(dtype) {
    for (const policies::StoredPart& from : vectors.parts) {
        Part& part = parts_.emplace_back();
        part.width = from.width;
        part.channels = from.channels;
        part.map = from.map;
        part.numbers.resize(positions.size() * static_cast<size_t>(from.width) * kernels::size_of(dtype));
        if (!from.numbers.empty())
            store(from.numbers, dtype, part.numbers.data());
        else if (dtype == DType::f32)
            gather<float>(dense, positions, from.channels, head_dim, part.numbers.data());
        else
            gather<bf16>(dense, positions, from.channels, head_dim, part.numbers.data());
    }
}

void StoredNumbers::read(int64_t begin, int64_t end, float* out) const {
    std::fill_n(out, (end - begin) * head_dim_, 0.0f);
    for (const Part& part : parts_) {
        for (int64_t i = begin; i < end; ++i) {
            float* vector = out + (i - begin) * head_dim_;
            const char* numbers = part.numbers.data() + static_cast<size_t>(i * part.width) * kernels::size_of(dtype_);
            if (dtype_ == DType::f32)
                add_part(reinterpret_cast<const float*>(numbers), part.width, part.channels, part.map.get(), vector);
            else
                add_part(reinterpret_cast<const bf16*>(numbers), part.width, part.channels, part.map.get(), vector);
        }
    }
}

size_t StoredNumbers::bytes() const {
    size_t total = 0;
    for (const Part& part : parts_) total += part.numbers.size() + part.channels.size() * sizeof(uint16_t);
    return total;
}

StoredEntries::StoredEntries(const policies::StoredEntries& entries, const char* keys, const char* values, int head_dim,
                             DType dtype)
    : positions_(entries.positions),
      masses_(entries.masses),
      head_dim_(head_dim),
      dtype_(dtype),
      keys_(entries.keys, positions_, keys, head_dim, dtype),
      values_(entries.values, positions_, values, head_dim, dtype) {}

StoredEntries::Attended StoredEntries::from(int64_t first) const {
    Attended attended;
    kernels::DecodeRow& row = attended.row;
    row.n_entries = size() - first;
    if (!masses_.empty()) row.cardinality = masses_.data() + first;
    const bool has_whole_values = values_.is_plain() && values_.channels().empty();
    if (!keys_.is_plain() || !has_whole_values) {
        attended.entries = std::make_unique<WorkedOut>(keys_, values_, first);
        row.entries = attended.entries.get();
        return attended;
    }
    attended.key_channels = keys_.channels();
    row.key_dim = keys_.width();
    row.k_stride = keys_.width();
    row.v_stride = head_dim_;
    const auto at = [&](const StoredNumbers& numbers) {
        return static_cast<const char*>(numbers.data()) +
               static_cast<size_t>(first * numbers.width()) * kernels::size_of(dtype_);
    };
    row.k = at(keys_);
    row.v = at(values_);
    return attended;
}

}  // namespace kvscope::engine
