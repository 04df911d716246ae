#include "policies/methods/echo_encoder.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope::policies {

EchoEncoder::EchoEncoder(const EchoMaps& maps, Projected which)
    : layout_(maps.layout), before_rope_(which == Projected::keys) {
    for (const auto& [layer, of_layer] : maps.layers)
        maps_[layer] = columns(which == Projected::keys ? of_layer.keys : of_layer.values);
}

EchoEncoder::HeadMaps EchoEncoder::columns(const Matrix& map) const {
    const int d = layout_.head_dim, width = layout_.width(), local = layout_.local;
    HeadMaps maps;
    const auto part_of = [&](int head, int first_row, int n_rows) {
        auto part = std::make_shared<Matrix>(Matrix{n_rows, d, {}});
        part->numbers.resize(static_cast<size_t>(n_rows) * static_cast<size_t>(d), 0.0f);
        for (int row = 0; row < n_rows; ++row)
            for (int c = std::max(0, local - head * d); c < d; ++c)
                part->numbers[static_cast<size_t>(row * d + c)] =
                    map.numbers[static_cast<size_t>(first_row + row) * static_cast<size_t>(map.n_columns) +
                                static_cast<size_t>(head * d + c - local)];
        return part;
    };
    for (int head = 0; head < layout_.n_kv_heads; ++head) {
        maps.of_first.push_back(part_of(head, 0, width));
        if (local > 0) maps.of_local.push_back(part_of(head, width, local));
    }
    return maps;
}

std::vector<StoredVectors> EchoEncoder::store(int layer_index, const EntriesView& view, int64_t first, int64_t end,
                                              StoredLayer& layer) {
    const bool is_first = layout_.is_first(layer_index);
    const int width = is_first ? layout_.width() : layout_.local;
    std::shared_ptr<const StoredBlock> own;
    if (width > 0) own = layer.blocks.emplace_back(stored_block_of(view, first, end, width));
    if (is_first) base_ = own;
    const HeadMaps* maps = is_first ? nullptr : &maps_.at(layer_index);
    std::vector<StoredVectors> heads;
    for (int head = 0; head < layout_.n_kv_heads; ++head) heads.push_back(vectors(head, own, maps));
    if (layer_index + 1 == layout_.n_layers || layout_.is_first(layer_index + 1)) base_ = nullptr;
    return heads;
}

std::shared_ptr<const StoredBlock> EchoEncoder::stored_block_of(const EntriesView& view, int64_t first, int64_t end,
                                                                int width) const {
    const int d = layout_.head_dim;
    auto block = std::make_shared<StoredBlock>();
    block->width = width;
    block->numbers.resize(static_cast<size_t>(end - first) * static_cast<size_t>(width));
    std::vector<float> vector(static_cast<size_t>(d));
    for (int64_t token = first; token < end; ++token)
        for (int head = 0; head * d < width; ++head) {
            read_entry(view, head, token, d, vector.data());
            std::copy_n(vector.data(), std::min(d, width - head * d),
                        block->numbers.data() + (token - first) * width + head * d);
        }
    return block;
}

StoredVectors EchoEncoder::vectors(int head, const std::shared_ptr<const StoredBlock>& own,
                                   const HeadMaps* maps) const {
    const int d = layout_.head_dim;
    const int n_own = maps ? std::clamp(layout_.local - head * d, 0, d) : d;
    StoredVectors vectors;
    vectors.before_rope = before_rope_;
    if (n_own > 0) {
        StoredPart part{.width = n_own, .block = own, .first_column = head * d};
        for (int c = 0; n_own < d && c < n_own; ++c) part.channels.push_back(static_cast<uint16_t>(c));
        vectors.parts.push_back(std::move(part));
    }
    if (n_own == d) return vectors;
    const auto h = static_cast<size_t>(head);
    vectors.parts.push_back({.width = layout_.width(), .block = base_, .map = maps->of_first[h]});
    if (layout_.local > 0) vectors.parts.push_back({.width = layout_.local, .block = own, .map = maps->of_local[h]});
    return vectors;
}

bool is_layer_stored_in_parts(const EchoLayout& layout, int layer) {
    if (!layout.is_first(layer)) return layout.is_rebuilt(layer);
    return layer + 1 < layout.n_layers && layout.is_rebuilt(layer + 1);
}

double cache_share_with_echo_maps(const std::string& path) {
    try {
        return read_echo_header(path).layout.model_ratio();
    } catch (const EchoMapsError&) {
        return 1.0;
    }
}

EchoMaps read_echo_maps_for_model(const std::string& policy, const std::string& path, const RunContext& context) {
    if (path.empty())
        throw EchoMapsError(policy +
                            " rebuilds keys and values with maps trained for the model. Set the parameter `maps` to a "
                            "safetensors file, which `kvscope train-echo -m MODEL -o FILE` creates.");
    const EchoMaps header = read_echo_header(path);
    const auto refuse = [&](const std::string& why) {
        throw EchoMapsError("EchoKV's maps '" + path + "' belong to another model: " + why +
                            " Create maps for this model with `kvscope train-echo -m MODEL -o FILE`.");
    };
    const ModelShape& shape = context.shape;
    const EchoLayout& layout = header.layout;
    if (layout.n_layers != shape.n_layers || layout.n_kv_heads != shape.n_kv_heads || layout.head_dim != shape.head_dim)
        refuse(fmt::format(
            "they have {} layers of {} KV heads of size {}, but the model has {} layers of {} KV heads of size {}.",
            layout.n_layers, layout.n_kv_heads, layout.head_dim, shape.n_layers, shape.n_kv_heads, shape.head_dim));
    if (header.model_fingerprint != context.model_fingerprint)
        refuse(fmt::format("their fingerprint is {}, but the model's is {}.", header.model_fingerprint,
                           context.model_fingerprint));
    return read_echo_maps(path);
}

}  // namespace kvscope::policies
