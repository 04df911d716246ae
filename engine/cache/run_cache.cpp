#include "engine/cache/run_cache.h"

#include <algorithm>
#include <numeric>

#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"
#include "policies/registry/validation.h"

namespace kvscope::engine {
namespace {

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
    policies::require_valid_selection_rows("the policy", layer, model_->shape(), n_tokens, selection);
    policies::require_valid_storage("the policy", layer, model_->shape(), selection);
    if (selection.granularity != granularity_)
        throw RunError("layer " + std::to_string(layer) + ": the policy kept " + std::to_string(selection.rows.size()) +
                       " rows, but earlier layers have " + std::to_string(n_rows_));
    if (selection.stored && renumbers())
        throw RunError("layer " + std::to_string(layer) +
                       ": entries that are stored in parts cannot be renumbered in the cache");
}

void RunCache::compress(int layer, const policies::Selection& selection, const DenseLayer& dense,
                        std::vector<kernels::RowCopy>* later) {
    require_holdable(layer, selection, dense.capacity());
    const DenseLayer source = model_->device().is_processor() ? dense.on_processor() : dense;
    if (!selection.stored) return compress_whole(layer, selection.rows, source, later);
    std::vector<std::vector<uint32_t>> plain;
    for (const auto& row : selection.stored->rows) plain.push_back(row.plain);
    compress_whole(layer, plain, source);
    store(layer, *selection.stored, &source);
}

void RunCache::Layer::allocate(std::vector<int64_t> capacities, int64_t head_dim, const at::TensorOptions& options) {
    int64_t total = 0;
    for (const int64_t entries : capacities) {
        begin.push_back(total);
        total += entries;
    }
    capacity = std::move(capacities);
    keys = at::empty({total * head_dim}, options);
    values = at::empty({total * head_dim}, options);
}

RunCache::Layer& RunCache::allocate(int layer, const std::vector<std::vector<uint32_t>>& rows) {
    auto& target = layers_[static_cast<size_t>(layer)];
    target = Layer{};
    std::vector<int64_t> capacities;
    for (const auto& row : rows) capacities.push_back(static_cast<int64_t>(row.size()));
    target.allocate(std::move(capacities), model_->config().head_dim, model_->options());
    target.positions = rows;
    return target;
}

void RunCache::compress_whole(int layer, const std::vector<std::vector<uint32_t>>& rows, const DenseLayer& dense,
                              std::vector<kernels::RowCopy>* later) {
    auto& target = allocate(layer, rows);
    const int group = n_rows_ / model_->config().n_kv_heads;
    std::vector<kernels::RowCopy> copies;
    for (int row = 0; row < n_rows_; ++row) {
        const auto& kept = target.positions[static_cast<size_t>(row)];  // must exist until the copies are made
        const int64_t first = (row / group) * dense.capacity(), to = target.begin[static_cast<size_t>(row)];
        const auto n = static_cast<int64_t>(kept.size());
        copies.push_back(copy_of(dense.keys, first, target.keys, to, n, kept.data()));
        copies.push_back(copy_of(dense.values, first, target.values, to, n, kept.data()));
    }
    if (later && positions_ != policies::Positions::cache) {
        later->insert(later->end(), copies.begin(), copies.end());
        return;
    }
    model_->backend().copy_rows(copies);
    if (positions_ != policies::Positions::cache) return;
    for (int row = 0; row < n_rows_; ++row) {
        const auto& kept = rows[static_cast<size_t>(row)];
        std::vector<int64_t> by(kept.size());
        for (size_t i = 0; i < kept.size(); ++i)
            by[i] = (unrotated_ ? 0 : static_cast<int64_t>(i)) - static_cast<int64_t>(kept[i]);
        turn_keys(target, row, 0, by);
    }
}

kernels::RowCopy RunCache::copy_of(const at::Tensor& from, int64_t first, const at::Tensor& to, int64_t to_first,
                                   int64_t n, const uint32_t* rows) const {
    const size_t entry = entry_bytes();
    return {.from = data_pointer(from) + static_cast<size_t>(first) * entry,
            .from_stride = entry,
            .to = data_pointer(to) + static_cast<size_t>(to_first) * entry,
            .to_stride = entry,
            .n_rows = n,
            .row_bytes = entry,
            .rows = rows};
}

void RunCache::edit_values(int layer, int row, const std::function<void(std::span<float>)>& edit) {
    auto& target = layers_[static_cast<size_t>(layer)];
    const auto r = static_cast<size_t>(row);
    const int64_t d = model_->config().head_dim;
    at::Tensor values =
        target.values.narrow(0, target.begin[r] * d, static_cast<int64_t>(target.positions[r].size()) * d);
    at::Tensor edited = values.to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
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

RunCache::Layer RunCache::packed(const Layer& layer, int64_t extra) const {
    Layer copy;
    copy.positions = layer.positions;
    copy.stored = layer.stored;
    copy.blocks = layer.blocks;
    copy.grown = layer.grown;
    copy.queries = layer.queries;
    copy.room = extra;
    std::vector<int64_t> capacities;
    for (const auto& row : layer.positions) capacities.push_back(static_cast<int64_t>(row.size()) + extra);
    copy.allocate(std::move(capacities), model_->config().head_dim, layer.keys.options());
    std::vector<kernels::RowCopy> copies;
    for (size_t row = 0; row < layer.positions.size(); ++row) {
        const auto n = static_cast<int64_t>(layer.positions[row].size());
        if (n == 0) continue;
        copies.push_back(copy_of(layer.keys, layer.begin[row], copy.keys, copy.begin[row], n));
        copies.push_back(copy_of(layer.values, layer.begin[row], copy.values, copy.begin[row], n));
    }
    model_->backend().copy_rows(copies);
    return copy;
}

int64_t RunCache::n_entries(int layer, int row) const {
    int64_t total = n_plain(layer, row);
    for (const auto& entries : stored(layer, row)) total += entries->size();
    return total;
}

void RunCache::append(int layer, int row, const Tokens& tokens, std::vector<kernels::RowCopy>& copies) {
    auto& target = layers_[static_cast<size_t>(layer)];
    const auto r = static_cast<size_t>(row);
    auto& positions = target.positions[r];
    const auto count = static_cast<int64_t>(positions.size());
    if (count + tokens.n > target.capacity[r])
        throw std::logic_error("a cache row is full: reserve was not called for this many tokens");
    const size_t to = static_cast<size_t>(target.begin[r] + count) * entry_bytes();
    const auto copy = [&](const void* from, size_t stride, const at::Tensor& into) {
        return kernels::RowCopy{.from = from,
                                .from_stride = stride,
                                .to = data_pointer(into) + to,
                                .to_stride = entry_bytes(),
                                .n_rows = tokens.n,
                                .row_bytes = entry_bytes()};
    };
    const kernels::RowCopy both[] = {copy(tokens.keys, tokens.key_stride, target.keys),
                                     copy(tokens.values, tokens.value_stride, target.values)};
    for (int64_t t = 0; t < tokens.n; ++t) positions.push_back(static_cast<uint32_t>(tokens.position + t));
    if (!unrotated_) {
        copies.insert(copies.end(), std::begin(both), std::end(both));
        return;
    }
    model_->backend().copy_rows(both);
    std::vector<int64_t> by(static_cast<size_t>(tokens.n));
    for (int64_t t = 0; t < tokens.n; ++t) by[static_cast<size_t>(t)] = -(count + t);
    turn_keys(target, row, count, by);
}

void RunCache::turn(void* keys, std::span<const int64_t> by) const {
    if (by.empty()) return;
    model_->backend().rope(rope_of(model_->turn(by), model_->dtype(), 1, keys, model_->config().head_dim));
}

void RunCache::turn_keys(Layer& layer, int row, int64_t first, std::span<const int64_t> by) const {
    turn(data_pointer(layer.keys) + static_cast<size_t>(layer.begin[static_cast<size_t>(row)] + first) * entry_bytes(),
         by);
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
    view.keys = data_pointer(source.keys) + from;
    view.values = data_pointer(source.values) + from;
    if (unrotated_) {
        at::Tensor rotated = at::empty({view.n_entries * d}, source.keys.options());
        const kernels::RowCopy copy = copy_of(source.keys, source.begin[r] + view.first, rotated, 0, view.n_entries);
        model_->backend().copy_rows({&copy, 1});
        std::vector<int64_t> places(static_cast<size_t>(view.n_entries));
        std::iota(places.begin(), places.end(), view.first);
        turn(rotated.data_ptr(), places);
        view.keys = rotated.data_ptr();
        scratch.push_back(std::move(rotated));
    }
    return view;
}

at::Tensor RunCache::keys_on_processor(int layer, int row, int64_t n) const {
    Scratch scratch;
    const RowView seen = view(layer, row, n, 0, 0, scratch);
    const int64_t d = model_->config().head_dim;
    const auto options = at::TensorOptions().dtype(model_->scalar_type());
    if (model_->device().is_processor() && scratch.empty())
        // NOLINTNEXTLINE(*-const-cast): from_blob() takes no pointers to const
        return at::from_blob(const_cast<void*>(seen.keys), {n, d}, options);
    at::Tensor keys = at::empty({n, d}, options);
    model_->backend().download(keys.data_ptr(), seen.keys, keys.nbytes());
    return keys;
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
    std::vector<uint32_t> stay;
    size_t next = 0;
    for (uint32_t from = 0; from < positions.size(); ++from) {
        if (next < entries.size() && entries[next] == from)
            ++next;
        else
            stay.push_back(from);
    }
    if (next != entries.size())
        throw RunError("layer " + std::to_string(layer) + ", row " + std::to_string(row) +
                       ": a policy evicted entries that do not exist or are not in ascending order");
    const size_t first = entries[0];
    const auto n = static_cast<int64_t>(stay.size() - first);
    const int64_t to = target.begin[r] + static_cast<int64_t>(first);
    const kernels::RowCopy copies[] = {
        copy_of(target.keys, target.begin[r], target.keys, to, n, stay.data() + first),
        copy_of(target.values, target.begin[r], target.values, to, n, stay.data() + first)};
    model_->backend().copy_rows(copies);
    for (size_t i = first; i < stay.size(); ++i) positions[i] = positions[stay[i]];
    positions.resize(stay.size());
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
           policies::row_share_of_layer_bytes(block_bytes(layer), static_cast<size_t>(row),
                                              static_cast<size_t>(n_rows_));
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
