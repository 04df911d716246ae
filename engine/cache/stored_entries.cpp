#include "engine/cache/stored_entries.h"

#include <algorithm>
#include <cstring>

#include "engine/common/engine_error.h"
#include "kernels/bf16.h"
#include "kernels/rope.h"

namespace kvscope::engine {
namespace {

using kernels::bf16;
using kernels::DType;

std::vector<char> stored(std::span<const float> numbers, DType dtype) {
    std::vector<char> bytes(numbers.size() * kernels::size_of(dtype));
    if (!numbers.empty()) from_floats(numbers.data(), dtype, static_cast<int64_t>(numbers.size()), bytes.data());
    return bytes;
}

float number_of(const kernels::StoredNumbers& numbers, int64_t entry, int column) {
    const int64_t at = entry * numbers.stride + column;
    return numbers.dtype == DType::f32 ? static_cast<const float*>(numbers.data)[at]
                                       : kernels::to_float(static_cast<const bf16*>(numbers.data)[at]);
}

/// Entries whose keys or values are computed when they are read.
class WorkedOut final : public kernels::DecodeEntries {
 public:
    WorkedOut(const StoredVectors& keys, const StoredVectors& values, int64_t first)
        : keys_(keys), values_(values), first_(first) {}
    void read_keys(int64_t begin, int64_t end, float* keys) const override {
        keys_.read(first_ + begin, first_ + end, keys);
    }
    size_t scratch_floats(int n_queries) const override { return values_.scratch_floats(n_queries); }
    void sum_values(int64_t begin, int64_t end, const float* weights, int n_queries, float* scratch,
                    float* out) const override {
        values_.sum(first_ + begin, first_ + end, weights, n_queries, scratch, out);
    }

 private:
    const StoredVectors& keys_;
    const StoredVectors& values_;
    int64_t first_;
};

}  // namespace

void to_floats(const char* from, DType dtype, int64_t n, float* to) {
    if (dtype == DType::f32) {
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
        return;
    }
    const auto* numbers = reinterpret_cast<const bf16*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = kernels::to_float(numbers[i]);
}
void from_floats(const float* from, DType dtype, int64_t n, char* to) {
    if (dtype == DType::f32) {
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
        return;
    }
    auto* numbers = reinterpret_cast<bf16*>(to);
    for (int64_t i = 0; i < n; ++i) numbers[i] = kernels::bf16_from_float(from[i]);
}

char* copy_channels(const char* vector, int head_dim, std::span<const uint16_t> channels, size_t element, char* to) {
    if (channels.empty()) return std::copy_n(vector, static_cast<size_t>(head_dim) * element, to);
    for (const uint16_t channel : channels) to = std::copy_n(vector + channel * element, element, to);
    return to;
}

StoredBlock::StoredBlock(int width, std::span<const float> numbers, DType dtype)
    : width_(width), dtype_(dtype), numbers_(stored(numbers, dtype)) {}

StoredBlock::StoredBlock(std::span<const uint16_t> channels, std::span<const uint32_t> positions, const char* dense,
                         int head_dim, DType dtype)
    : width_(channels.empty() ? head_dim : static_cast<int>(channels.size())), dtype_(dtype) {
    if (dense == nullptr) throw RunError("a part has no numbers, and there is no prompt's cache to copy them from");
    const size_t element = kernels::size_of(dtype);
    numbers_.resize(positions.size() * static_cast<size_t>(width_) * element);
    char* to = numbers_.data();
    for (const uint32_t position : positions)
        to = copy_channels(dense + static_cast<size_t>(position) * static_cast<size_t>(head_dim) * element, head_dim,
                           channels, element, to);
}

void StoredBlock::append(std::span<const float> numbers) {
    const std::vector<char> more = stored(numbers, dtype_);
    numbers_.insert(numbers_.end(), more.begin(), more.end());
}

kernels::StoredNumbers StoredBlock::numbers(int64_t begin, int64_t end, int first_column, int n_columns) const {
    return {.dtype = dtype_,
            .data = numbers_.data() + static_cast<size_t>(begin * width_ + first_column) * kernels::size_of(dtype_),
            .stride = width_,
            .n = end - begin,
            .width = n_columns};
}

StoredVectors::StoredVectors(const policies::StoredVectors& vectors, std::span<const uint32_t> positions,
                             const char* dense, const StoredSource& source)
    : head_dim_(source.head_dim), dtype_(source.dtype), before_rope_(vectors.before_rope), offset_(vectors.offset) {
    if (before_rope_) {
        rotation_ = source.rotation;
        positions_.assign(positions.begin(), positions.end());
    }
    for (const policies::StoredPart& from : vectors.parts) {
        Part& part = parts_.emplace_back();
        part.width = from.width;
        part.first_column = from.first_column;
        part.channels = from.channels;
        part.map = from.map;
        part.scales = stored(from.scales, dtype_);
        if (from.block)
            part.block = source.block(from.block);
        else if (!from.numbers.empty())
            part.own = std::make_shared<StoredBlock>(from.width, from.numbers, dtype_);
        else
            part.own = std::make_shared<StoredBlock>(from.channels, positions, dense, head_dim_, dtype_);
        if (part.own) part.block = part.own;
    }
}

bool StoredVectors::is_like(const policies::StoredVectors& vectors, const StoredSource& source) const {
    return before_rope_ == vectors.before_rope && offset_ == vectors.offset &&
           std::equal(
               parts_.begin(), parts_.end(), vectors.parts.begin(), vectors.parts.end(),
               [&](const Part& part, const policies::StoredPart& other) {
                   return part.width == other.width && part.first_column == other.first_column &&
                          part.channels == other.channels && part.map == other.map &&
                          part.scales.empty() == other.scales.empty() &&
                          (other.block ? part.block == source.block(other.block) : part.own && !other.numbers.empty());
               });
}

void StoredVectors::append(const policies::StoredVectors& vectors, std::span<const uint32_t> positions,
                           const StoredSource& source) {
    if (before_rope_) {
        rotation_ = source.rotation;
        positions_.insert(positions_.end(), positions.begin(), positions.end());
    }
    for (size_t i = 0; i < parts_.size(); ++i) {
        if (parts_[i].own) parts_[i].own->append(vectors.parts[i].numbers);
        const std::vector<char> scales = stored(vectors.parts[i].scales, dtype_);
        parts_[i].scales.insert(parts_[i].scales.end(), scales.begin(), scales.end());
    }
}

void StoredVectors::detach(const CopiedBlocks& blocks) {
    for (Part& part : parts_) {
        if (part.own) {
            part.own = std::make_shared<StoredBlock>(*part.own);
            part.block = part.own;
        } else if (const auto found = blocks.find(part.block.get()); found != blocks.end()) {
            part.block = found->second;
        }
    }
}

float StoredVectors::scale_of(const Part& part, int64_t entry) const {
    return number_of({.dtype = dtype_, .data = part.scales.data(), .stride = 1}, entry, 0);
}

void StoredVectors::add_vectors(const Part& part, int64_t begin, int64_t end, float* out) const {
    const auto numbers = part.numbers(begin, end);
    for (int64_t i = 0; i < numbers.n; ++i, out += head_dim_) {
        const float scale = part.scales.empty() ? 1.0f : scale_of(part, begin + i);
        for (int c = 0; c < numbers.width; ++c)
            out[part.channels.empty() ? c : part.channels[static_cast<size_t>(c)]] += scale * number_of(numbers, i, c);
    }
}

void StoredVectors::turn(int64_t begin, int64_t end, float* keys) const {
    const int64_t half = head_dim_ / 2;
    for (int64_t i = begin; i < end;) {
        const auto position = int64_t{positions_[static_cast<size_t>(i)]};
        int64_t n = 1;  // number of entries at consecutive positions
        while (i + n < end && positions_[static_cast<size_t>(i + n)] == position + n) ++n;
        kernels::rope({.dtype = DType::f32,
                       .n_tokens = n,
                       .n_heads = 1,
                       .head_dim = head_dim_,
                       .x = keys + (i - begin) * head_dim_,
                       .token_stride = head_dim_,
                       .cosines = rotation_.cosines.const_data_ptr<float>() + position * half,
                       .sines = rotation_.sines.const_data_ptr<float>() + position * half});
        i += n;
    }
}

void StoredVectors::read(int64_t begin, int64_t end, float* out) const {
    std::fill_n(out, (end - begin) * head_dim_, 0.0f);
    if (!offset_.empty())
        for (int64_t i = 0; i < end - begin; ++i) std::copy(offset_.begin(), offset_.end(), out + i * head_dim_);
    for (const Part& part : parts_) {
        if (part.map)
            kernels::add_product_with_map(part.numbers(begin, end), part.map->numbers.data(), head_dim_, out);
        else
            add_vectors(part, begin, end, out);
    }
    if (before_rope_) turn(begin, end, out);
}

size_t StoredVectors::scratch_floats(int n_queries) const {
    size_t most = 0;
    for (const Part& part : parts_) {
        const auto scaled = part.scales.empty() ? int64_t{0} : kernels::decode_tile;
        most = std::max(most, static_cast<size_t>(n_queries * (part.width + scaled)));
    }
    return most;
}

void StoredVectors::add_offset(int64_t n, const float* weights, int n_queries, float* out) const {
    for (int query = 0; query < n_queries; ++query) {
        const float* of_query = weights + query * kernels::decode_tile;
        float weight = 0;
        for (int64_t i = 0; i < n; ++i) weight += of_query[i];
        for (int c = 0; c < head_dim_; ++c) out[query * head_dim_ + c] += weight * offset_[static_cast<size_t>(c)];
    }
}

void StoredVectors::sum(int64_t begin, int64_t end, const float* weights, int n_queries, float* scratch,
                        float* out) const {
    std::fill_n(out, n_queries * head_dim_, 0.0f);
    if (!offset_.empty()) add_offset(end - begin, weights, n_queries, out);
    for (const Part& part : parts_) {
        float* sums = scratch;
        const float* scaled = weights;
        if (!part.scales.empty()) {
            float* to = scratch + n_queries * part.width;
            scaled = to;
            for (int64_t i = begin; i < end; ++i) {
                const float scale = scale_of(part, i);
                for (int64_t query = 0; query < n_queries; ++query)
                    to[query * kernels::decode_tile + i - begin] =
                        weights[query * kernels::decode_tile + i - begin] * scale;
            }
        }
        std::fill_n(sums, n_queries * part.width, 0.0f);
        kernels::add_weighted(part.numbers(begin, end), scaled, kernels::decode_tile, n_queries, sums);
        const kernels::StoredNumbers summed{.data = sums, .stride = part.width, .n = n_queries, .width = part.width};
        if (part.map) {
            kernels::add_product_with_map(summed, part.map->numbers.data(), head_dim_, out);
            continue;
        }
        for (int query = 0; query < n_queries; ++query)
            for (int c = 0; c < part.width; ++c)
                out[query * head_dim_ + (part.channels.empty() ? c : part.channels[static_cast<size_t>(c)])] +=
                    sums[query * part.width + c];
    }
}

size_t StoredVectors::own_bytes() const {
    size_t total = 0;
    for (const Part& part : parts_)
        total += (part.own ? part.own->bytes() : 0) + part.scales.size() + part.channels.size() * sizeof(uint16_t);
    return total;
}

void StoredVectors::add_maps(std::set<const policies::Matrix*>& maps) const {
    for (const Part& part : parts_)
        if (part.map) maps.insert(part.map.get());
}

StoredEntries::StoredEntries(const policies::StoredEntries& entries, const StoredSource& source)
    : positions_(entries.positions),
      masses_(entries.masses),
      keys_(entries.keys, positions_, source.keys, source),
      values_(entries.values, positions_, source.values, source) {}

bool StoredEntries::append(const policies::StoredEntries& entries, const StoredSource& source) {
    if (masses_.empty() != entries.masses.empty() || !keys_.is_like(entries.keys, source) ||
        !values_.is_like(entries.values, source))
        return false;
    positions_.insert(positions_.end(), entries.positions.begin(), entries.positions.end());
    masses_.insert(masses_.end(), entries.masses.begin(), entries.masses.end());
    keys_.append(entries.keys, entries.positions, source);
    values_.append(entries.values, entries.positions, source);
    return true;
}

std::shared_ptr<StoredEntries> StoredEntries::copy(const CopiedBlocks& blocks) const {
    auto copy = std::make_shared<StoredEntries>(*this);
    copy->keys_.detach(blocks);
    copy->values_.detach(blocks);
    return copy;
}

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
    const auto keys = keys_.plain(first, size()), values = values_.plain(first, size());
    attended.key_channels = keys_.channels();
    row.key_dim = keys.width;
    row.k = keys.data;
    row.k_stride = keys.stride;
    row.v = values.data;
    row.v_stride = values.stride;
    return attended;
}

}  // namespace kvscope::engine
