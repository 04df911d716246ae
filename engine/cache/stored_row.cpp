#include "engine/cache/stored_row.h"

#include <algorithm>
#include <cstring>

#include "kernels/bf16.h"

namespace kvscope::engine {
namespace {

using kernels::bf16;
using kernels::DType;

void store(std::span<const float> numbers, DType dtype, char* out) {
    if (dtype == DType::f32) {
        std::memcpy(out, numbers.data(), numbers.size_bytes());
        return;
    }
    auto* to = reinterpret_cast<bf16*>(out);
    for (const float number : numbers) *to++ = kernels::bf16_from_float(number);
}

/// Adds a part's share of one vector.
template <class T>
void add_part(const T* numbers, int width, std::span<const uint16_t> channels, const policies::Matrix* map,
              float* out) {
    if (map) {
        const float* row = map->numbers.data();
        for (int i = 0; i < width; ++i, row += map->n_columns) {
            const float number = kernels::to_float(numbers[i]);
            for (int c = 0; c < map->n_columns; ++c) out[c] += number * row[c];
        }
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

char* copy_channels(const char* vector, int head_dim, std::span<const uint16_t> channels, size_t element, char* to) {
    if (channels.empty()) return std::copy_n(vector, static_cast<size_t>(head_dim) * element, to);
    for (const uint16_t channel : channels) to = std::copy_n(vector + channel * element, element, to);
    return to;
}

StoredNumbers::StoredNumbers(const policies::StoredVectors& vectors, std::span<const uint32_t> positions,
                             const char* dense, int head_dim, DType dtype)
    : head_dim_(head_dim), dtype_(dtype) {
    const size_t element = kernels::size_of(dtype);
    for (const policies::StoredPart& from : vectors.parts) {
        Part& part = parts_.emplace_back();
        part.width = from.width;
        part.channels = from.channels;
        part.map = from.map;
        part.numbers.resize(positions.size() * static_cast<size_t>(from.width) * element);
        char* to = part.numbers.data();
        if (!from.numbers.empty()) {
            store(from.numbers, dtype, to);
            continue;
        }
        for (const uint32_t position : positions)
            to = copy_channels(dense + static_cast<size_t>(position) * static_cast<size_t>(head_dim) * element,
                               head_dim, from.channels, element, to);
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
