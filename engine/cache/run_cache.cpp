#include "engine/cache/run_cache.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/common/error.h"
#include "kernels/rope.h"
#include "policies/interface/validation.h"

namespace kvscope::engine {
namespace {

/// The first entry whose position is above `last_hidden`.
int64_t first_behind(std::span<const uint32_t> positions, int64_t last_hidden) {
    return std::partition_point(positions.begin(), positions.end(),
                                [&](uint32_t p) { return static_cast<int64_t>(p) <= last_hidden; }) -
           positions.begin();
}

}  // namespace

RunCache::RunCache(const Transformer& model, policies::Granularity granularity, policies::Positions positions,
                   bool evicts_while_decoding)
    : model_(&model),
      granularity_(granularity),
      positions_(positions),
      unrotated_(positions == policies::Positions::cache && evicts_while_decoding),
      n_rows_(granularity == policies::Granularity::kv_head ? model.config().n_kv_heads : model.config().n_heads),
      layers_(static_cast<size_t>(model.config().n_layers)) {}

size_t RunCache::entry_bytes() const {
    return static_cast<size_t>(model_->config().head_dim) * kernels::size_of(model_->dtype());
}

void RunCache::require_holdable(int layer, const policies::Selection& selection, int64_t n_tokens) const {
    policies::require_rows("the policy", layer, model_->shape(), n_tokens, selection);
    policies::require_stored("the policy", layer, model_->shape(), selection);
    if (selection.granularity != granularity_)
        throw RunError("layer " + std::to_string(layer) + ": the policy kept " + std::to_string(selection.rows.size()) +
                       " rows where those before have " + std::to_string(n_rows_));
    if (selection.stored && renumbers())
        throw RunError("layer " + std::to_string(layer) +
                       ": entries that are stored in parts cannot be renumbered in the cache");
}

void RunCache::compress(int layer, const policies::Selection& selection, const DenseLayer& dense) {
    require_holdable(layer, selection, dense.capacity());
    if (!selection.stored) return compress_whole(layer, selection.rows, dense);
    std::vector<std::vector<uint32_t>> plain;
    for (const auto& row : selection.stored->rows) plain.push_back(row.plain);
    compress_whole(layer, plain, dense);
    store(layer, *selection.stored, &dense);
}

RunCache::Layer& RunCache::allocate(int layer, const std::vector<std::vector<uint32_t>>& rows) {
    auto& target = layers_[static_cast<size_t>(layer)];
    target = Layer{};
    int64_t total = 0;
    for (const auto& row : rows) {
        target.begin.push_back(total);
        target.capacity.push_back(static_cast<int64_t>(row.size()));
        total += static_cast<int64_t>(row.size());
    }
    target.positions = rows;
    const auto options = at::TensorOptions().dtype(model_->scalar_type());
    target.keys = at::empty({total * model_->config().head_dim}, options);
    target.values = at::empty({total * model_->config().head_dim}, options);
    return target;
}

void RunCache::compress_whole(int layer, const std::vector<std::vector<uint32_t>>& rows, const DenseLayer& dense) {
    auto& target = allocate(layer, rows);
    const int group = n_rows_ / model_->config().n_kv_heads;
    const size_t entry = entry_bytes();
    for (int row = 0; row < n_rows_; ++row) {
        const auto& kept = rows[static_cast<size_t>(row)];
        const auto source = static_cast<size_t>((row / group) * dense.capacity());
        auto to = static_cast<size_t>(target.begin[static_cast<size_t>(row)]);
        for (const uint32_t position : kept) {
            std::memcpy(bytes_of(target.keys) + to * entry, bytes_of(dense.keys) + (source + position) * entry, entry);
            std::memcpy(bytes_of(target.values) + to * entry, bytes_of(dense.values) + (source + position) * entry,
                        entry);
            ++to;
        }
        if (positions_ == policies::Positions::cache) {
            std::vector<int64_t> by(kept.size());
            for (size_t i = 0; i < kept.size(); ++i)
                by[i] = (unrotated_ ? 0 : static_cast<int64_t>(i)) - static_cast<int64_t>(kept[i]);
            turn_keys(target, row, 0, by);
        }
    }
}

void RunCache::edit_values(int layer, int row, const std::function<void(std::span<float>)>& edit) {
    auto& target = layers_[static_cast<size_t>(layer)];
    const auto r = static_cast<size_t>(row);
    const int64_t d = model_->config().head_dim;
    at::Tensor values =
        target.values.narrow(0, target.begin[r] * d, static_cast<int64_t>(target.positions[r].size()) * d);
    at::Tensor edited = values.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    edit({edited.mutable_data_ptr<float>(), static_cast<size_t>(edited.numel())});
    values.copy_(edited);
}

void RunCache::adopt(int layer, const DenseLayer& dense, int64_t n_entries) {
    auto& target = layers_[static_cast<size_t>(layer)];
    target = Layer{};
    target.keys = dense.keys;
    target.values = dense.values;
    target.room = dense.capacity() - n_entries;
    for (int row = 0; row < n_rows_; ++row) {
        target.begin.push_back(row * dense.capacity());
        target.capacity.push_back(dense.capacity());
        target.positions.emplace_back(static_cast<size_t>(n_entries));
        std::iota(target.positions.back().begin(), target.positions.back().end(), 0u);
    }
}

void RunCache::reserve(int64_t extra) {
    for (auto& layer : layers_) {
        bool enough = true;
        for (size_t row = 0; row < layer.positions.size(); ++row)
            enough = enough && static_cast<int64_t>(layer.positions[row].size()) + extra <= layer.capacity[row];
        if (!enough) layer = packed(layer, extra);
    }
}

/// A copy of a layer whose plain entries are in buffers of their own.
RunCache::Layer RunCache::packed(const Layer& layer, int64_t extra) const {
    const int64_t d = model_->config().head_dim;
    const size_t entry = entry_bytes();
    Layer copy;
    copy.positions = layer.positions;
    copy.stored = layer.stored;
    copy.blocks = layer.blocks;
    copy.grown = layer.grown;
    copy.queries = layer.queries;
    copy.room = extra;
    int64_t total = 0;
    for (const auto& row : layer.positions) {
        copy.begin.push_back(total);
        copy.capacity.push_back(static_cast<int64_t>(row.size()) + extra);
        total += copy.capacity.back();
    }
    copy.keys = at::empty({total * d}, layer.keys.options());
    copy.values = at::empty({total * d}, layer.values.options());
    for (size_t row = 0; row < layer.positions.size(); ++row) {
        const size_t bytes = layer.positions[row].size() * entry;
        if (bytes == 0) continue;
        const size_t from = static_cast<size_t>(layer.begin[row]) * entry;
        const size_t to = static_cast<size_t>(copy.begin[row]) * entry;
        std::memcpy(bytes_of(copy.keys) + to, bytes_of(layer.keys) + from, bytes);
        std::memcpy(bytes_of(copy.values) + to, bytes_of(layer.values) + from, bytes);
    }
    return copy;
}

int64_t RunCache::n_entries(int layer, int row) const {
    int64_t total = n_plain(layer, row);
    for (const auto& entries : stored(layer, row)) total += entries->size();
    return total;
}

void RunCache::append(int layer, int row, const void* key, const void* value, int64_t position) {
    auto& target = layers_[static_cast<size_t>(layer)];
    const auto r = static_cast<size_t>(row);
    auto& positions = target.positions[r];
    const auto count = static_cast<int64_t>(positions.size());
    if (count >= target.capacity[r])
        throw std::logic_error("a cache row is full: reserve was not called for this many tokens");
    const size_t to = static_cast<size_t>(target.begin[r] + count) * entry_bytes();
    std::memcpy(bytes_of(target.keys) + to, key, entry_bytes());
    std::memcpy(bytes_of(target.values) + to, value, entry_bytes());
    positions.push_back(static_cast<uint32_t>(position));
    if (unrotated_) turn_keys(target, row, count, std::vector<int64_t>{-count});
}

void RunCache::turn_keys(Layer& layer, int row, int64_t first, std::span<const int64_t> by) const {
    if (by.empty()) return;
    const int64_t d = model_->config().head_dim;
    const auto rotation = model_->turn(by);
    kernels::rope(
        {.dtype = model_->dtype(),
         .n_tokens = static_cast<int64_t>(by.size()),
         .n_heads = 1,
         .head_dim = static_cast<int>(d),
         .x = bytes_of(layer.keys) + static_cast<size_t>(layer.begin[static_cast<size_t>(row)] + first) * entry_bytes(),
         .token_stride = d,
         .cosines = rotation.cosines.const_data_ptr<float>(),
         .sines = rotation.sines.const_data_ptr<float>()});
}

RunCache::RowView RunCache::view(int layer, int row, int64_t n_visible, int64_t position, int64_t sliding_window,
                                 Scratch& scratch) const {
    const auto& source = layers_[static_cast<size_t>(layer)];
    const int64_t d = model_->config().head_dim;
    RowView view;
    view.n_entries = n_visible;
    const auto r = static_cast<size_t>(row);
    view.first = first_visible(layer, row, n_visible, position, sliding_window);
    view.n_entries -= view.first;
    const size_t from = static_cast<size_t>(source.begin[r] + view.first) * entry_bytes();
    view.keys = bytes_of(source.keys) + from;
    view.values = bytes_of(source.values) + from;
    if (unrotated_) {
        at::Tensor rotated = at::empty({view.n_entries * d}, source.keys.options());
        std::memcpy(rotated.data_ptr(), view.keys, static_cast<size_t>(view.n_entries) * entry_bytes());
        std::vector<int64_t> places(static_cast<size_t>(view.n_entries));
        std::iota(places.begin(), places.end(), view.first);
        const auto rotation = model_->turn(places);
        kernels::rope({.dtype = model_->dtype(),
                       .n_tokens = view.n_entries,
                       .n_heads = 1,
                       .head_dim = static_cast<int>(d),
                       .x = rotated.data_ptr(),
                       .token_stride = d,
                       .cosines = rotation.cosines.const_data_ptr<float>(),
                       .sines = rotation.sines.const_data_ptr<float>()});
        view.keys = rotated.data_ptr();
        scratch.push_back(std::move(rotated));
    }
    return view;
}

std::vector<std::shared_ptr<const StoredEntries>> RunCache::stored(int layer, int row) const {
    const auto& source = layers_[static_cast<size_t>(layer)];
    std::vector<std::shared_ptr<const StoredEntries>> all;
    if (!source.stored.empty()) all = source.stored[static_cast<size_t>(row)];
    if (!source.grown.rows.empty()) all.push_back(source.grown.rows[static_cast<size_t>(row)]);
    return all;
}

std::vector<StoredEntries::Attended> RunCache::stored_view(int layer, int row, int64_t position,
                                                           int64_t sliding_window) const {
    std::vector<StoredEntries::Attended> views;
    for (const auto& entries : stored(layer, row)) {
        const int64_t first = sliding_window == 0 ? 0 : first_behind(entries->positions(), position - sliding_window);
        if (first < entries->size()) views.push_back(entries->from(first));
    }
    return views;
}

int64_t RunCache::first_visible(int layer, int row, int64_t n_visible, int64_t position, int64_t sliding_window) const {
    if (sliding_window == 0) return 0;
    const int64_t last_hidden = position - sliding_window;
    if (renumbers()) return std::clamp<int64_t>(last_hidden + 1, 0, n_visible);
    return first_behind(positions(layer, row).first(static_cast<size_t>(n_visible)), last_hidden);
}

std::span<const uint32_t> RunCache::positions(int layer, int row) const {
    return layers_[static_cast<size_t>(layer)].positions[static_cast<size_t>(row)];
}

void RunCache::erase(int layer, int row, std::span<const uint32_t> entries) {
    if (entries.empty()) return;
    auto& target = layers_[static_cast<size_t>(layer)];
    const auto r = static_cast<size_t>(row);
    auto& positions = target.positions[r];
    const size_t entry = entry_bytes();
    char* keys = bytes_of(target.keys) + static_cast<size_t>(target.begin[r]) * entry;
    char* values = bytes_of(target.values) + static_cast<size_t>(target.begin[r]) * entry;
    size_t to = 0;
    size_t next = 0;
    for (size_t from = 0; from < positions.size(); ++from) {
        if (next < entries.size() && entries[next] == from) {
            ++next;
            continue;
        }
        if (to != from) {
            std::memcpy(keys + to * entry, keys + from * entry, entry);
            std::memcpy(values + to * entry, values + from * entry, entry);
            positions[to] = positions[from];
        }
        ++to;
    }
    if (next != entries.size())
        throw RunError("layer " + std::to_string(layer) + ", row " + std::to_string(row) +
                       ": a policy evicted entries that do not exist or are not in ascending order");
    positions.resize(to);
}

size_t RunCache::stored_bytes(int layer, int row) const {
    size_t total = 0;
    std::set<const policies::Matrix*> maps;
    for (const auto& entries : stored(layer, row)) {
        total += entries->own_bytes();
        entries->add_maps(maps);
    }
    for (const policies::Matrix* map : maps) total += map->prompt_bytes();
    return total;
}

size_t RunCache::block_bytes(int layer) const {
    const auto& source = layers_[static_cast<size_t>(layer)];
    size_t total = 0;
    for (const auto& block : source.blocks) total += block->bytes();
    for (const auto& block : source.grown.blocks) total += block->bytes();
    return total;
}

size_t RunCache::row_bytes(int layer, int row) const {
    const auto& source = layers_[static_cast<size_t>(layer)];
    return 2 * static_cast<size_t>(source.capacity[static_cast<size_t>(row)] - source.room) * entry_bytes() +
           stored_bytes(layer, row) +
           policies::row_share(block_bytes(layer), static_cast<size_t>(row), static_cast<size_t>(n_rows_));
}

size_t RunCache::layer_bytes(int layer) const {
    const auto& source = layers_[static_cast<size_t>(layer)];
    const size_t room = 2 * static_cast<size_t>(n_rows_ * source.room) * entry_bytes();
    size_t total = source.keys.storage().nbytes() + source.values.storage().nbytes() - room + block_bytes(layer);
    for (int row = 0; row < n_rows_; ++row) total += stored_bytes(layer, row);
    return total;
}

RunCache::Mark RunCache::mark() const {
    Mark mark;
    for (const auto& layer : layers_) {
        auto& counts = mark.emplace_back();
        for (const auto& row : layer.positions) counts.push_back(static_cast<int64_t>(row.size()));
    }
    return mark;
}

void RunCache::rewind(const Mark& mark) {
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
        for (size_t row = 0; row < layers_[layer].positions.size(); ++row)
            layers_[layer].positions[row].resize(static_cast<size_t>(mark[layer][row]));
    }
}

RunCache RunCache::clone(int64_t extra) const {
    RunCache copy(*model_, granularity_, positions_, false);
    copy.unrotated_ = unrotated_;
    copy.blocks_ = blocks_;
    for (size_t i = 0; i < layers_.size(); ++i) copy.layers_[i] = packed(layers_[i], extra);
    copy.detach_grown();
    copy.drop_unused_blocks();
    return copy;
}

}  // namespace kvscope::engine
