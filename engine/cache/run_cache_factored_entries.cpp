
#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "engine/cache/run_cache.h"
#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"
#include "kernels/rope.h"

namespace kvscope::engine {
namespace {

int64_t n_turned(const policies::StoredLayer& described) {
    int64_t n = 0;
    for (const auto& row : described.rows)
        for (const auto& entries : row.stored)
            if (entries.keys.before_rope) n = std::max(n, int64_t{entries.positions.back()} + 1);
    return n;
}

/// Whether the description contains all numbers and needs none from the prompt's cache.
bool is_given(const policies::StoredLayer& described) {
    const auto given = [](const policies::StoredVectors& vectors) {
        return std::all_of(vectors.parts.begin(), vectors.parts.end(),
                           [](const policies::StoredPart& part) { return part.block || !part.numbers.empty(); });
    };
    return std::all_of(described.rows.begin(), described.rows.end(), [&](const auto& row) {
        return row.plain.empty() && std::all_of(row.stored.begin(), row.stored.end(), [&](const auto& entries) {
                   return given(entries.keys) && given(entries.values);
               });
    });
}

struct LeavingVectors {
    std::vector<float> keys, keys_before_rope, values;

    policies::ReducedTokens tokens(int layer, std::span<const uint32_t> positions, int head_dim) const {
        const auto view = [&](const std::vector<float>& vectors) {
            return policies::EntriesView{.data = vectors.data(),
                                         .head_stride = static_cast<int64_t>(positions.size()) * head_dim};
        };
        return {layer, positions, view(keys), view(keys_before_rope), view(values)};
    }
};

}  // namespace

StoredSource RunCache::source_of(int layer, const policies::StoredLayer& described) const {
    StoredSource source{.head_dim = model_->config().head_dim, .dtype = model_->dtype()};
    source.block = [this, layer](const std::shared_ptr<const policies::StoredBlock>& block) {
        const auto found = blocks_.find(block);
        if (found == blocks_.end())
            throw RunError("layer " + std::to_string(layer) +
                           ": a part refers to shared numbers that no layer has stored");
        return found->second;
    };
    if (const int64_t n = n_turned(described); n > 0) {
        std::vector<int64_t> positions(static_cast<size_t>(n));
        std::iota(positions.begin(), positions.end(), int64_t{0});
        source.rotation = model_->rotation(positions);
    }
    return source;
}

void RunCache::require_processor() const {
    if (!model_->device().is_processor())
        throw std::logic_error("entries that are merged or stored in parts require the processor");
}

void RunCache::store(int layer, const policies::StoredLayer& described, const DenseLayer* dense) {
    require_processor();
    auto& target = layers_[static_cast<size_t>(layer)];
    for (const auto& block : described.blocks) {
        target.blocks.push_back(std::make_shared<const StoredBlock>(block->width, block->numbers, model_->dtype()));
        blocks_[block] = target.blocks.back();
    }
    StoredSource source = source_of(layer, described);
    target.stored.resize(described.rows.size());
    for (size_t row = 0; row < described.rows.size(); ++row) {
        if (dense) {
            const auto group = static_cast<size_t>(n_rows_ / model_->config().n_kv_heads);
            const size_t head = row / group * static_cast<size_t>(dense->capacity()) * entry_bytes();
            source.keys = data_pointer(dense->keys) + head;
            source.values = data_pointer(dense->values) + head;
        }
        for (const auto& entries : described.rows[row].stored)
            target.stored[row].push_back(std::make_shared<const StoredEntries>(entries, source));
    }
}

void RunCache::store_others(int layer, const policies::WholeTokens& whole, int64_t n_tokens, const Describe& describe) {
    require_processor();
    auto& target = layers_[static_cast<size_t>(layer)];
    const auto& plain = target.positions[0];
    const auto place_of = [&](int64_t position) {
        return std::partition_point(plain.begin(), plain.end(), [&](uint32_t p) { return int64_t{p} < position; }) -
               plain.begin();
    };
    const int64_t begin = place_of(whole.first), end = place_of(n_tokens - whole.last);
    if (begin >= end) return;
    const std::string at = "layer " + std::to_string(layer) + ": ";
    if (renumbers()) throw RunError(at + "entries that are stored in parts cannot be renumbered in the cache");
    const std::vector<uint32_t> positions(plain.begin() + begin, plain.begin() + end);
    for (const auto& row : target.positions)
        if (static_cast<int64_t>(row.size()) < end ||
            !std::equal(positions.begin(), positions.end(), row.begin() + begin))
            throw RunError(
                at + "a policy that stores tokens in parts while decoding must keep the same tokens in every row");
    LeavingVectors leaving;
    const auto n = static_cast<int64_t>(positions.size()) * model_->config().head_dim;
    const auto add_row = [&](const at::Tensor& from, size_t row, std::vector<float>& to) {
        to.resize(to.size() + static_cast<size_t>(n));
        to_floats(data_pointer(from) + static_cast<size_t>(target.begin[row] + begin) * entry_bytes(), model_->dtype(),
                  n, to.data() + to.size() - n);
    };
    for (size_t row = 0; row < target.positions.size(); ++row) {
        add_row(target.keys, row, leaving.keys);
        add_row(target.values, row, leaving.values);
    }
    leaving.keys_before_rope = turned_back(leaving.keys, positions);
    const policies::StoredLayer described = describe(leaving.tokens(layer, positions, model_->config().head_dim));
    require_growable(layer, described, positions);
    drop_unused_blocks();
    grow(layer, described);
    std::vector<uint32_t> places(positions.size());
    std::iota(places.begin(), places.end(), static_cast<uint32_t>(begin));
    for (int row = 0; row < n_rows_; ++row) erase(layer, row, places);
    shrink(layer);
}

void RunCache::shrink(int layer) {
    auto& target = layers_[static_cast<size_t>(layer)];
    constexpr int64_t few = 32;
    int64_t held = 0, left = 0;
    for (size_t row = 0; row < target.positions.size(); ++row) {
        const auto size = static_cast<int64_t>(target.positions[row].size());
        held += size;
        left += target.capacity[row] - target.room - size - few;
    }
    if (left > held) target = packed(target, target.room);
}

void RunCache::drop_unused_blocks() {
    std::erase_if(blocks_, [](const auto& block) { return block.first.expired(); });
}

/// Removes the rotation from keys (rows, n, d) of tokens at the given positions.
std::vector<float> RunCache::turned_back(std::vector<float> keys, std::span<const uint32_t> positions) const {
    const int64_t d = model_->config().head_dim;
    std::vector<int64_t> by(positions.begin(), positions.end());
    for (int64_t& position : by) position = -position;
    const auto rotation = model_->turn(by);
    const auto n = static_cast<int64_t>(by.size());
    for (size_t row = 0; row < keys.size(); row += static_cast<size_t>(n * d))
        kernels::rope(rope_of(rotation, kernels::DType::f32, 1, keys.data() + row, d));
    if (const float factor = model_->attention_factor(); factor != 1.0f)
        for (float& number : keys) number /= factor;
    return keys;
}

void RunCache::require_growable(int layer, const policies::StoredLayer& described,
                                const std::vector<uint32_t>& positions) const {
    policies::Selection selection;
    selection.rows.assign(static_cast<size_t>(n_rows_), positions);
    selection.stored = described;
    policies::require_valid_storage("the policy", layer, model_->shape(), selection);
    const bool one_kind = std::all_of(described.rows.begin(), described.rows.end(),
                                      [](const auto& row) { return row.stored.size() == 1; });
    if (!one_kind || !is_given(described))
        throw RunError("layer " + std::to_string(layer) +
                       ": whole tokens must be stored as entries of a single kind in each row, with their "
                       "own numbers");
}

void RunCache::grow(int layer, const policies::StoredLayer& described) {
    auto& grown = layers_[static_cast<size_t>(layer)].grown;
    const auto require_alike = [&](bool alike) {
        if (!alike)
            throw RunError("layer " + std::to_string(layer) +
                           ": decoded tokens are described differently from earlier ones");
    };
    const bool is_first = grown.rows.empty();
    require_alike(is_first || grown.blocks.size() == described.blocks.size());
    for (size_t i = 0; i < described.blocks.size(); ++i) {
        const auto& block = described.blocks[i];
        if (is_first) {
            grown.blocks.push_back(std::make_shared<StoredBlock>(block->width, block->numbers, model_->dtype()));
        } else {
            require_alike(grown.blocks[i]->width() == block->width);
            grown.blocks[i]->append(block->numbers);
        }
        blocks_[block] = grown.blocks[i];
    }
    const StoredSource source = source_of(layer, described);
    for (size_t row = 0; row < described.rows.size(); ++row) {
        const auto& entries = described.rows[row].stored[0];
        if (is_first)
            grown.rows.push_back(std::make_shared<StoredEntries>(entries, source));
        else
            require_alike(grown.rows[row]->append(entries, source));
    }
}

void RunCache::hold(int layer, const policies::Selection& selection, int64_t n_tokens) {
    require_holdable(layer, selection, n_tokens);
    if (!selection.stored || !is_given(*selection.stored))
        throw RunError("layer " + std::to_string(layer) + ": the description of the entries lacks numbers");
    allocate(layer, std::vector<std::vector<uint32_t>>(static_cast<size_t>(n_rows_)));
    store(layer, *selection.stored, nullptr);
}

void RunCache::make_whole(int layer) {
    if (!stores_parts(layer)) return;
    auto& target = layers_[static_cast<size_t>(layer)];
    const int64_t d = model_->config().head_dim;
    const size_t entry = entry_bytes();
    Layer whole;
    whole.room = target.room;
    std::vector<int64_t> capacities;
    for (int row = 0; row < n_rows_; ++row) capacities.push_back(n_entries(layer, row) + target.room);
    whole.allocate(std::move(capacities), d, target.keys.options());
    for (int row = 0; row < n_rows_; ++row) {
        const auto r = static_cast<size_t>(row);
        auto& to = whole.positions.emplace_back();
        for (const auto& entries : stored(layer, row))
            to.insert(to.end(), entries->positions().begin(), entries->positions().end());
        to.insert(to.end(), target.positions[r].begin(), target.positions[r].end());
        std::sort(to.begin(), to.end());
        const auto place_of = [&](uint32_t position) {
            const auto place = std::lower_bound(to.begin(), to.end(), position) - to.begin();
            return static_cast<size_t>(whole.begin[r] + place) * entry;
        };
        std::vector<float> key(static_cast<size_t>(d)), value(static_cast<size_t>(d));
        for (const auto& entries : stored(layer, row))
            for (int64_t i = 0; i < entries->size(); ++i) {
                if (entries->mass(i) != 1.0f)
                    throw RunError("layer " + std::to_string(layer) + ": merged entries cannot be made whole");
                entries->read(i, i + 1, key.data(), value.data());
                const size_t at = place_of(entries->positions()[static_cast<size_t>(i)]);
                from_floats(key.data(), model_->dtype(), d, data_pointer(whole.keys) + at);
                from_floats(value.data(), model_->dtype(), d, data_pointer(whole.values) + at);
            }
        const size_t from = static_cast<size_t>(target.begin[r]) * entry;
        for (size_t i = 0; i < target.positions[r].size(); ++i) {
            const size_t at = place_of(target.positions[r][i]);
            std::memcpy(data_pointer(whole.keys) + at, data_pointer(target.keys) + from + i * entry, entry);
            std::memcpy(data_pointer(whole.values) + at, data_pointer(target.values) + from + i * entry, entry);
        }
    }
    target = std::move(whole);
    drop_unused_blocks();
}

HeldLayer RunCache::held(int layer) const {
    require_processor();
    const auto& source = layers_[static_cast<size_t>(layer)];
    const auto refuse = [&](const char* why) { throw RunError("layer " + std::to_string(layer) + ": " + why); };
    if (renumbers()) refuse("entries that are renumbered in the cache cannot be merged");
    const int64_t d = model_->config().head_dim, n = n_entries(layer, 0);
    HeldLayer held;
    held.keys = at::empty({n_rows_, n, d}, source.keys.options());
    held.values = at::empty_like(held.keys);
    std::vector<float> keys(static_cast<size_t>(n * d)), values(keys.size());
    for (int row = 0; row < n_rows_; ++row) {
        std::vector<float> masses;
        std::vector<uint32_t> positions;
        for (const auto& entries : stored(layer, row)) {
            const auto done = static_cast<int64_t>(positions.size());
            if (done + entries->size() > n) refuse("its rows hold different entries, which cannot be merged together");
            entries->read(0, entries->size(), keys.data() + done * d, values.data() + done * d);
            for (int64_t i = 0; i < entries->size(); ++i) masses.push_back(entries->mass(i));
            positions.insert(positions.end(), entries->positions().begin(), entries->positions().end());
        }
        const auto n_stored = static_cast<int64_t>(positions.size());
        const auto& plain = source.positions[static_cast<size_t>(row)];
        positions.insert(positions.end(), plain.begin(), plain.end());
        masses.resize(positions.size(), 1.0f);
        if (row == 0) {
            if (!std::is_sorted(positions.begin(), positions.end())) refuse("its entries are not stored in order");
            held.masses = masses;
            held.positions = positions;
        }
        if (held.masses != masses || held.positions != positions)
            refuse("its rows hold different entries, which cannot be merged together");
        const size_t to = static_cast<size_t>(row * n) * entry_bytes();
        from_floats(keys.data(), model_->dtype(), n_stored * d, data_pointer(held.keys) + to);
        from_floats(values.data(), model_->dtype(), n_stored * d, data_pointer(held.values) + to);
        if (plain.empty()) continue;
        const size_t from = static_cast<size_t>(source.begin[static_cast<size_t>(row)]) * entry_bytes();
        const size_t behind = to + static_cast<size_t>(n_stored) * entry_bytes();
        std::memcpy(data_pointer(held.keys) + behind, data_pointer(source.keys) + from, plain.size() * entry_bytes());
        std::memcpy(data_pointer(held.values) + behind, data_pointer(source.values) + from,
                    plain.size() * entry_bytes());
    }
    return held;
}

void RunCache::hold_merged(int layer, const HeldLayer& held, int64_t n_plain) {
    auto& target = layers_[static_cast<size_t>(layer)];
    const int64_t d = model_->config().head_dim, n = static_cast<int64_t>(held.positions.size());
    const int64_t n_stored = n - n_plain;
    const auto all_but_last = [&](size_t of) {
        std::vector<uint32_t> places(target.positions[of].size() - static_cast<size_t>(n_plain));
        std::iota(places.begin(), places.end(), 0u);
        return places;
    };
    target.stored.assign(static_cast<size_t>(n_rows_), {});
    target.blocks.clear();
    target.grown = {};
    for (int row = 0; row < n_rows_; ++row) {
        policies::StoredEntries entries;
        entries.positions.assign(held.positions.begin(), held.positions.begin() + n_stored);
        entries.masses.assign(held.masses.begin(), held.masses.begin() + n_stored);
        const auto part_of = [&](const at::Tensor& vectors) {
            policies::StoredPart part{.width = static_cast<int>(d)};
            part.numbers.resize(static_cast<size_t>(n_stored * d));
            to_floats(data_pointer(vectors) + static_cast<size_t>(row * n) * entry_bytes(), model_->dtype(),
                      n_stored * d, part.numbers.data());
            return part;
        };
        entries.keys.parts.push_back(part_of(held.keys));
        entries.values.parts.push_back(part_of(held.values));
        const StoredSource source{.head_dim = static_cast<int>(d), .dtype = model_->dtype()};
        const auto r = static_cast<size_t>(row);
        target.stored[r].push_back(std::make_shared<const StoredEntries>(entries, source));
        erase(layer, row, all_but_last(r));
    }
    shrink(layer);
    drop_unused_blocks();
}

void RunCache::detach_grown() {
    CopiedBlocks copies;
    for (auto& layer : layers_)
        for (auto& block : layer.grown.blocks) {
            const auto own = std::make_shared<StoredBlock>(*block);
            copies[block.get()] = own;
            block = own;
        }
    for (auto& layer : layers_)
        for (auto& entries : layer.grown.rows) entries = entries->copy(copies);
}

}  // namespace kvscope::engine
