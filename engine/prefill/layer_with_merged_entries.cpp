#include "engine/prefill/layer_with_merged_entries.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/device/tensor_functions.h"
#include "kernels/bf16.h"
#include "kernels/rope.h"

namespace kvscope::engine {
namespace {

/// Merges pairs among n vectors. Pair i becomes the vector at merged + i * stride, or its sum if `merged` is null.
template <class T>
void merge_vectors(T* vectors, int64_t d, int64_t n, std::span<const uint32_t> pairs, const float* merged,
                   int64_t stride) {
    size_t next = 0;
    for (int64_t from = 0, to = 0; from < n; ++from, ++to) {
        T* target = vectors + to * d;
        const T* source = vectors + from * d;
        if (next == pairs.size() || from != pairs[next]) {
            if (to != from) std::memmove(target, source, static_cast<size_t>(d) * sizeof(T));
            continue;
        }
        const float* given = merged ? merged + static_cast<int64_t>(next) * stride : nullptr;
        for (int64_t c = 0; c < d; ++c)
            target[c] = kernels::from_float<T>(given ? given[c]
                                                     : kernels::to_float(source[c]) + kernels::to_float(source[d + c]));
        ++next;
        ++from;
    }
}

void merge_numbers(double* numbers, int64_t n, std::span<const uint32_t> pairs) {
    size_t next = 0;
    for (int64_t from = 0, to = 0; from < n; ++from, ++to) {
        const bool is_pair = next < pairs.size() && from == pairs[next];
        numbers[to] = is_pair ? numbers[from] + numbers[from + 1] : numbers[from];
        if (is_pair) ++next, ++from;
    }
}

double dot(const float* a, const float* b, int64_t d) {
    double sum = 0;
    for (int64_t c = 0; c < d; ++c) sum += double{a[c]} * double{b[c]};
    return sum;
}

}  // namespace

bool MergedLayer::has_merged() const { return !positions.empty() && size() != int64_t{positions.back()} + 1; }

std::vector<int64_t> MergedLayer::places() const {
    std::vector<int64_t> places(positions.begin(), positions.end());
    for (size_t i = places.size(); i-- > 1;) places[i - 1] = places[i] - static_cast<int64_t>(masses[i]);
    return places;
}

void MergedLayer::merge(const policies::Merges& merges, int64_t n_after) {
    const int64_t n = size() + n_after, d = entries.keys.size(2), n_heads = entries.keys.size(0);
    const auto in = [&](auto* keys, auto* values) {
        for (int64_t head = 0; head < n_heads; ++head) {
            const int64_t first = head * entries.capacity() * d;
            merge_vectors(keys + first, d, n, merges.first, merges.keys.data() + head * d, n_heads * d);
            merge_vectors(values + first, d, n, merges.first, nullptr, 0);
        }
    };
    if (entries.keys.scalar_type() == at::kBFloat16)
        in(static_cast<kernels::bf16*>(entries.keys.data_ptr()),
           static_cast<kernels::bf16*>(entries.values.data_ptr()));
    else
        in(entries.keys.data_ptr<float>(), entries.values.data_ptr<float>());
    if (from) {
        for (int64_t head = 0; head < n_heads; ++head) {
            const int64_t first = head * entries.capacity();
            merge_vectors(from->key_sums.data_ptr<float>() + first * d, d, n, merges.first, nullptr, 0);
            merge_numbers(from->key_squares.data() + first, n, merges.first);
            merge_numbers(from->value_squares.data() + first, n, merges.first);
        }
    }
    std::vector<float> new_masses;
    std::vector<uint32_t> new_positions;
    size_t next = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
        const bool pair = next < merges.first.size() && i == merges.first[next];
        new_masses.push_back(pair ? std::min(masses[i] + masses[i + 1], merges.largest_mass) : masses[i]);
        if (pair) ++next, ++i;
        new_positions.push_back(positions[i]);
    }
    masses = std::move(new_masses);
    positions = std::move(new_positions);
}

void MergedLayer::append(int64_t first, int64_t n) {
    const int64_t begin = size();
    for (int64_t i = 0; i < n; ++i) positions.push_back(static_cast<uint32_t>(first + i));
    masses.resize(positions.size(), 1.0f);
    if (!from) return;
    const int64_t d = entries.keys.size(2);
    const at::Tensor keys = entries.keys.narrow(1, begin, n).to(at::kFloat).contiguous();
    const at::Tensor values = entries.values.narrow(1, begin, n).to(at::kFloat).contiguous();
    from->key_sums.narrow(1, begin, n).copy_(keys);
    for (int64_t head = 0; head < keys.size(0); ++head)
        for (int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<size_t>(head * entries.capacity() + begin + i);
            const float* key = keys.const_data_ptr<float>() + (head * n + i) * d;
            const float* value = values.const_data_ptr<float>() + (head * n + i) * d;
            from->key_squares[at] = dot(key, key, d);
            from->value_squares[at] = dot(value, value, d);
        }
}

MergeErrors merge_errors(const MergedLayer& layer) {
    const int64_t d = layer.entries.keys.size(2), n = layer.size();
    const at::Tensor keys = layer.entries.keys.narrow(1, 0, n).to(at::kFloat).contiguous();
    const at::Tensor values = layer.entries.values.narrow(1, 0, n).to(at::kFloat).contiguous();
    const auto ratio = [](double difference, double whole) {
        return whole > 0 ? static_cast<float>(std::sqrt(std::max(difference, 0.0) / whole)) : 0.0f;
    };
    MergeErrors errors;
    for (int64_t head = 0; head < keys.size(0); ++head) {
        double key_difference = 0, value_difference = 0, key_whole = 0, value_whole = 0;
        for (int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<size_t>(head * layer.entries.capacity() + i);
            const float* key = keys.const_data_ptr<float>() + (head * n + i) * d;
            const float* value = values.const_data_ptr<float>() + (head * n + i) * d;
            const float* sum = layer.from->key_sums.const_data_ptr<float>() + (head * layer.entries.capacity() + i) * d;
            const auto n_tokens = static_cast<double>(layer.n_tokens(static_cast<size_t>(i)));
            key_whole += layer.from->key_squares[at];
            value_whole += layer.from->value_squares[at];
            if (n_tokens == 1.0) continue;
            key_difference += layer.from->key_squares[at] - 2 * dot(key, sum, d) + n_tokens * dot(key, key, d);
            value_difference += layer.from->value_squares[at] - dot(value, value, d) / n_tokens;
        }
        errors.keys.push_back(ratio(key_difference, key_whole));
        errors.values.push_back(ratio(value_difference, value_whole));
    }
    return errors;
}

at::Tensor MergedLayer::rotated(const Transformer& model, std::span<const int64_t> at) const {
    const auto n = static_cast<int64_t>(at.size());
    at::Tensor turned = at::empty_like(entries.keys);
    turned.narrow(1, 0, n).copy_(entries.keys.narrow(1, 0, n));
    const int64_t d = model.shape().head_dim;
    kernels::rope(rope_of(model.rotation(at), model.dtype(), model.shape().n_kv_heads, turned.data_ptr(), d,
                          entries.capacity() * d));
    return turned;
}

policies::Selection selection_of_merged_layer(const Transformer& given, int64_t n_tokens, const MergedLayer& layer) {
    const Transformer& model = given.on_processor();
    const auto shape = model.shape();
    policies::Selection selection;
    selection.rows.assign(static_cast<size_t>(shape.n_kv_heads), layer.positions);
    if (!layer.has_merged()) return selection;
    std::vector<int32_t> token_entry(static_cast<size_t>(n_tokens), -1);
    uint32_t token = 0;
    for (size_t entry = 0; entry < layer.positions.size(); ++entry)
        for (; token <= layer.positions[entry]; ++token) token_entry[token] = static_cast<int32_t>(entry);
    const DenseLayer whole = to_dense_layer(model, layer);
    const at::Tensor keys = whole.keys.to(at::kFloat), values = whole.values.to(at::kFloat);
    const auto n_numbers = static_cast<size_t>(layer.size() * shape.head_dim);
    auto& rows = selection.stored.emplace().rows;
    for (int head = 0; head < shape.n_kv_heads; ++head) {
        policies::StoredEntries entries{.positions = layer.positions, .masses = layer.masses};
        const auto part = [&](const at::Tensor& vectors) {
            const float* first = vectors.const_data_ptr<float>() + static_cast<size_t>(head) * n_numbers;
            return policies::StoredPart{.width = shape.head_dim, .numbers = {first, first + n_numbers}};
        };
        entries.keys.parts.push_back(part(keys));
        entries.values.parts.push_back(part(values));
        rows.push_back({.stored = {std::move(entries)}, .plain = {}, .token_entry = token_entry});
    }
    return selection;
}

DenseLayer to_dense_layer(const Transformer& given, const MergedLayer& layer) {
    const Transformer& model = given.on_processor();
    return {layer.rotated(model, layer.places()).narrow(1, 0, layer.size()).contiguous(),
            layer.entries.values.narrow(1, 0, layer.size()).contiguous()};
}

}  // namespace kvscope::engine
