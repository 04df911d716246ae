#include "engine/decode/decode_merging.h"

#include <algorithm>
#include <vector>

#include "engine/device/tensor_functions.h"
#include "engine/prefill/key_gradients.h"
#include "kernels/rope.h"
#include "policies/registry/validation.h"

namespace kvscope::engine {
namespace {

struct Attended {
    std::vector<float> attention;  ///< (H, n) weights of the entries before these tokens
    std::vector<float> outputs;    ///< (H, d)
};

/// @param queries (m, H d) of m tokens, whose own entries come after the first n entries
Attended attended(const Transformer& model, int layer, const at::Tensor& queries, const HeldLayer& held, int64_t n) {
    const auto shape = model.shape();
    const auto heads = static_cast<size_t>(shape.n_heads), all = held.positions.size();
    std::vector<double> sums(heads * all, 0.0);
    const std::vector<int64_t> positions(held.positions.begin(), held.positions.end());
    const auto first_keys =
        first_visible_entries(positions, queries.size(0), model.config().sliding_window[static_cast<size_t>(layer)]);
    AttentionRead read{.shape = shape,
                       .scale = model.attention_scale(),
                       .queries = queries,
                       .keys = held.keys,
                       .values = held.values,
                       .masses = held.masses,
                       .first_keys = first_keys,
                       .out = at::zeros_like(queries),
                       .column_sums = sums};
    model.operations().attend({&read, 1});
    Attended found;
    for (size_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < n; ++i)
            found.attention.push_back(
                static_cast<float>(sums[h * all + static_cast<size_t>(i)] / static_cast<double>(queries.size(0))));
    const at::Tensor mean = read.out.to(at::kFloat).mean(0).contiguous();
    found.outputs.assign(mean.const_data_ptr<float>(), mean.const_data_ptr<float>() + mean.numel());
    return found;
}

/// Rotates vectors (G, n, d) in f32 by differences of positions.
void turn(const Transformer& model, std::vector<float>& vectors, std::span<const int64_t> by) {
    const auto shape = model.shape();
    const int64_t d = shape.head_dim, n = static_cast<int64_t>(by.size());
    kernels::rope(rope_of(model.turn(by), kernels::DType::f32, shape.n_kv_heads, vectors.data(), d, n * d));
}

std::vector<float> floats(const at::Tensor& vectors, int64_t n) {
    const at::Tensor some = vectors.narrow(1, 0, n).to(at::kFloat).contiguous();
    return {some.const_data_ptr<float>(), some.const_data_ptr<float>() + some.numel()};
}

/// Merges each pair into an entry at the second entry's position, with the given key and summed values and masses.
HeldLayer merged(const Transformer& model, const HeldLayer& held, const policies::Merges& merges) {
    const auto shape = model.shape();
    const int64_t d = shape.head_dim, g = shape.n_kv_heads, n = static_cast<int64_t>(held.positions.size()),
                  n_pairs = static_cast<int64_t>(merges.first.size());
    std::vector<float> keys(static_cast<size_t>(n_pairs * g * d));  // (G, pairs, d)
    std::vector<int64_t> to;
    for (int64_t pair = 0; pair < n_pairs; ++pair) {
        to.push_back(held.positions[merges.first[static_cast<size_t>(pair)] + 1]);
        for (int64_t head = 0; head < g; ++head)
            std::copy_n(merges.keys.data() + (pair * g + head) * d, d, keys.data() + (head * n_pairs + pair) * d);
    }
    turn(model, keys, to);
    const float factor = model.attention_factor();
    for (float& number : keys) number *= factor;
    const at::Tensor given =
        at::from_blob(keys.data(), {g, n_pairs, d}, at::kFloat).to(held.keys.scalar_type(), false, true);
    HeldLayer result;
    result.keys = at::empty({g, n - n_pairs, d}, held.keys.options());
    result.values = at::empty_like(result.keys);
    int64_t pair = 0;
    for (int64_t from = 0, at = 0; from < n; ++from, ++at) {
        const bool is_pair = pair < n_pairs && from == int64_t{merges.first[static_cast<size_t>(pair)]};
        const auto i = static_cast<size_t>(from);
        if (is_pair) {
            result.keys.select(1, at).copy_(given.select(1, pair));
            const at::Tensor sum =
                held.values.select(1, from).to(at::kFloat) + held.values.select(1, from + 1).to(at::kFloat);
            result.values.select(1, at).copy_(sum);
            result.masses.push_back(held.masses[i] + held.masses[i + 1]);
            result.positions.push_back(held.positions[i + 1]);
            ++pair;
            ++from;
            continue;
        }
        result.keys.select(1, at).copy_(held.keys.select(1, from));
        result.values.select(1, at).copy_(held.values.select(1, from));
        result.masses.push_back(held.masses[i]);
        result.positions.push_back(held.positions[i]);
    }
    return result;
}

struct EntryRange {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
};

EntryRange entries_at(const HeldLayer& held, int64_t from, int64_t to) {
    const auto place_of = [&](int64_t position) {
        return std::partition_point(held.positions.begin(), held.positions.end(),
                                    [&](auto p) { return int64_t{p} < position; }) -
               held.positions.begin();
    };
    if (from >= to) return {};
    return {place_of(from), place_of(to)};
}

/// Merges `n_merges` pairs among the first n entries. The entries of the last decoded tokens come after them.
HeldLayer merge_once(const Transformer& model, int layer, const at::Tensor& queries,
                     policies::ReadsThroughOwnCache& policy, std::string_view label, const HeldLayer& held,
                     EntryRange whole, int64_t n, int64_t n_merges) {
    const auto shape = model.shape();
    const Attended found = attended(model, layer, queries, held, n);
    std::vector<float> keys = floats(held.keys, n);
    const std::vector<float> values = floats(held.values, n);
    std::vector<int64_t> back;
    for (int64_t i = 0; i < n; ++i) back.push_back(-int64_t{held.positions[static_cast<size_t>(i)]});
    turn(model, keys, back);
    if (const float factor = model.attention_factor(); factor != 1.0f)
        for (float& number : keys) number /= factor;
    const int64_t stride = n * shape.head_dim;
    policies::MergeObservations observations;
    observations.layer = layer;
    observations.shape = shape;
    observations.n_entries = n;
    observations.whole_begin = whole.begin;
    observations.whole_end = whole.end;
    observations.keys = {.data = keys.data(), .head_stride = stride};
    observations.values = {.data = values.data(), .head_stride = stride};
    observations.masses = std::span(held.masses).first(static_cast<size_t>(n));
    observations.n_queries = queries.size(0);
    observations.attention = found.attention;
    observations.outputs = found.outputs;
    const policies::Merges merges = policy.merge(observations, n_merges);
    policies::require_valid_merges(label, observations, n_merges, merges);
    return merged(model, held, merges);
}

}  // namespace

void merge_decoded(const Transformer& model, int layer, const char* queries, policies::ReadsThroughOwnCache& policy,
                   std::string_view label, int64_t first_decoded, RunCache& cache) {
    const auto merging = policy.decode_merging();
    const auto shape = model.shape();
    const int64_t width = int64_t{shape.n_heads} * shape.head_dim;
    auto& seen = cache.queries(layer);
    seen.insert(seen.end(), queries, queries + static_cast<size_t>(width) * kernels::size_of(model.dtype()));
    const auto m = static_cast<int64_t>(seen.size() / (static_cast<size_t>(width) * kernels::size_of(model.dtype())));
    if (m < merging.every) return;
    const at::Tensor rows =
        at::from_blob(seen.data(), {m, width}, at::TensorOptions().dtype(model.scalar_type())).clone();
    seen.clear();
    if (cache.n_entries(layer, 0) - m <= merging.budget) return;
    HeldLayer held = cache.held(layer);
    for (bool any = false;; any = true) {
        const auto n = static_cast<int64_t>(held.positions.size()) - m;
        const EntryRange whole = entries_at(held, merging.n_tokens, first_decoded);
        const int64_t n_merges = n - whole.size() - merging.budget;
        if (n_merges <= 0) {
            if (any) cache.hold_merged(layer, held, m);
            return;
        }
        held = merge_once(model, layer, rows, policy, label, held, whole, n, n_merges);
    }
}

}  // namespace kvscope::engine
