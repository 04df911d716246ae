#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "policies/interface/echo_maps.h"
#include "policies/interface/policy.h"

namespace kvscope::policies {

namespace {

enum class Rebuilt { keys, values, both };

/// Keeps every token. The first layer of a group stores all of its keys (before RoPE) and values, the others the first
/// D_local of the D = G d numbers of each; the rest is a linear map of those two, trained beforehand. The first `sinks`
/// and the last `recent` tokens stay exact. Decoded tokens stay exact, too.
class EchoKv : public Policy {
 public:
    explicit EchoKv(const ParameterValues& values)
        : path_(values.text("maps")),
          sinks_(values.integer("sinks")),
          recent_(values.integer("recent")),
          rebuilt_(values.text("rebuild") == "keys"     ? Rebuilt::keys
                   : values.text("rebuild") == "values" ? Rebuilt::values
                                                        : Rebuilt::both) {}

    Needs needs() const override {
        Needs needs;
        needs.keys_before_rope = true;
        return needs;
    }

    void begin(const RunContext& context) override {
        context_ = context;
        if (path_.empty())
            throw EchoMapsError(
                "echokv rebuilds keys and values by maps that are trained for the model: expected `maps`, a "
                "safetensors "
                "file, found none. `kvscope train-echo -m MODEL -o FILE` makes one.");
        const auto maps = read_echo_maps(path_);
        require_model(maps);
        layout_ = maps.layout;
        first_ = std::min<int64_t>(sinks_, context.n_tokens);
        end_ = std::max<int64_t>(context.n_tokens - recent_, first_);
        for (const auto& [layer, of_layer] : maps.layers)
            maps_[layer] = {columns(of_layer.keys), columns(of_layer.values)};
    }

    bool stores_parts() const override { return end_ > first_ && layout_.ratio() < 1.0; }

    bool decides_in_order() const override { return true; }

    Selection select(LayerObservations& observations) override {
        std::vector<uint32_t> all(static_cast<size_t>(context_.n_tokens));
        std::iota(all.begin(), all.end(), 0u);
        Selection selection;
        selection.rows.assign(static_cast<size_t>(layout_.n_kv_heads), all);
        if (!stores_parts()) return selection;
        if (layout_.is_first(observations.layer)) {
            bases_ = {};
            if (!layout_.is_rebuilt(observations.layer + 1) || observations.layer + 1 == layout_.n_layers)
                return selection;
        }
        selection.stored = stored(observations);
        // The engine stores its own; the next group's first layer, or none, has others.
        if (observations.layer + 1 == layout_.n_layers || layout_.is_first(observations.layer + 1)) bases_ = {};
        return selection;
    }

 private:
    /// Numbers of the exact tokens' neighbours, keys and values.
    struct Blocks {
        std::shared_ptr<const StoredBlock> keys, values;
    };
    /// A map's columns for each head: d of them, those that the head stores itself being zeros.
    struct HeadMaps {
        std::vector<std::shared_ptr<const Matrix>> of_first;  ///< (D, d)
        std::vector<std::shared_ptr<const Matrix>> of_local;  ///< (D_local, d); empty without
    };
    struct LayerMaps {
        HeadMaps keys, values;
    };

    void require_model(const EchoMaps& maps) const {
        const auto refuse = [&](const std::string& why) {
            throw EchoMapsError("EchoKV's maps '" + path_ + "' are of another model: " + why +
                                " `kvscope train-echo -m MODEL -o FILE` makes those of this one.");
        };
        const ModelShape& shape = context_.shape;
        const EchoLayout& layout = maps.layout;
        if (layout.n_layers != shape.n_layers || layout.n_kv_heads != shape.n_kv_heads ||
            layout.head_dim != shape.head_dim)
            refuse(fmt::format("they have {} layers of {} KV heads of {}, and the model has {} of {} of {}.",
                               layout.n_layers, layout.n_kv_heads, layout.head_dim, shape.n_layers, shape.n_kv_heads,
                               shape.head_dim));
        if (maps.model_fingerprint != context_.model_fingerprint)
            refuse(fmt::format("its fingerprint is {}, and the model's is {}.", maps.model_fingerprint,
                               context_.model_fingerprint));
    }

    HeadMaps columns(const Matrix& map) const {
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

    StoredLayer stored(const LayerObservations& observations) {
        StoredLayer layer;
        const bool is_first = layout_.is_first(observations.layer);
        const int width = is_first ? layout_.width() : layout_.local;
        Blocks own;
        const auto store = [&](const EntriesView& view) -> std::shared_ptr<const StoredBlock> {
            if (width == 0) return nullptr;
            return layer.blocks.emplace_back(block_of(view, width));
        };
        if (rebuilt_ != Rebuilt::values) own.keys = store(observations.keys_before_rope);
        if (rebuilt_ != Rebuilt::keys) own.values = store(observations.values);
        if (is_first) bases_ = own;
        const LayerMaps* maps = is_first ? nullptr : &maps_.at(observations.layer);
        for (int head = 0; head < layout_.n_kv_heads; ++head) {
            StoredEntries entries;
            entries.positions.resize(static_cast<size_t>(end_ - first_));
            std::iota(entries.positions.begin(), entries.positions.end(), static_cast<uint32_t>(first_));
            entries.keys = rebuilt_ == Rebuilt::values
                               ? whole()
                               : vectors(head, bases_.keys, own.keys, maps ? &maps->keys : nullptr);
            entries.keys.before_rope = rebuilt_ != Rebuilt::values;
            entries.values = rebuilt_ == Rebuilt::keys
                                 ? whole()
                                 : vectors(head, bases_.values, own.values, maps ? &maps->values : nullptr);
            StoredRow& row = layer.rows.emplace_back();
            row.stored.push_back(std::move(entries));
            for (uint32_t i = 0; i < context_.n_tokens; ++i)
                if (i < first_ || i >= end_) row.plain.push_back(i);
        }
        return layer;
    }

    StoredVectors whole() const {
        StoredVectors vectors;
        vectors.parts.push_back({.width = layout_.head_dim});
        return vectors;
    }

    /// A head's keys or values: its columns of what the layer stores, and what the maps make of the rest.
    StoredVectors vectors(int head, const std::shared_ptr<const StoredBlock>& base,
                          const std::shared_ptr<const StoredBlock>& own, const HeadMaps* maps) const {
        const int d = layout_.head_dim;
        const int n_own = maps ? std::clamp(layout_.local - head * d, 0, d) : d;  // of the head's channels
        StoredVectors vectors;
        if (n_own > 0) {
            StoredPart part{.width = n_own, .block = own, .first_column = head * d};
            for (int c = 0; n_own < d && c < n_own; ++c) part.channels.push_back(static_cast<uint16_t>(c));
            vectors.parts.push_back(std::move(part));
        }
        if (n_own == d) return vectors;
        const auto h = static_cast<size_t>(head);
        vectors.parts.push_back({.width = layout_.width(), .block = base, .map = maps->of_first[h]});
        if (layout_.local > 0)
            vectors.parts.push_back({.width = layout_.local, .block = own, .map = maps->of_local[h]});
        return vectors;
    }

    /// The first `width` numbers of the tokens between the exact ones, heads one after the other.
    std::shared_ptr<const StoredBlock> block_of(const EntriesView& view, int width) const {
        const int d = layout_.head_dim;
        auto block = std::make_shared<StoredBlock>();
        block->width = width;
        block->numbers.resize(static_cast<size_t>(end_ - first_) * static_cast<size_t>(width));
        std::vector<float> vector(static_cast<size_t>(d));
        for (int64_t token = first_; token < end_; ++token)
            for (int head = 0; head * d < width; ++head) {
                read_entry(view, head, token, d, vector.data());
                std::copy_n(vector.data(), std::min(d, width - head * d),
                            block->numbers.data() + (token - first_) * width + head * d);
            }
        return block;
    }

    std::string path_;
    int64_t sinks_, recent_;
    Rebuilt rebuilt_;
    RunContext context_;
    EchoLayout layout_;
    std::map<int, LayerMaps> maps_;
    int64_t first_ = 0, end_ = 0;  ///< tokens that are not exact
    Blocks bases_;                 ///< of the group's first layer
};

}  // namespace

Definition echokv_definition() {
    return {
        .name = "echokv",
        .title = "EchoKV",
        .paper =
            "Wang et al., EchoKV: Efficient KV Cache Compression via Similarity-Based Reconstruction, 2026, "
            "github.com/noforit/EchoKV",
        .summary =
            "Keeps every token; layers go in groups of which the first stores its keys and values, and the others a "
            "part "
            "of theirs and rebuild the rest by maps that were trained for the model.",
        .parameters =
            {
                text_parameter("maps", "",
                               "Safetensors file of the maps, as `kvscope train-echo` writes it; it decides the ratio. "
                               "Needed."),
                integer_parameter("sinks", 4, {.low = 0}, "First tokens that stay exact."),
                integer_parameter(
                    "recent", 128, {.low = 0},
                    "Last tokens of the prompt that stay exact, on top of the ratio; decoded tokens stay exact, too."),
                choice_parameter("rebuild", {"both", "keys", "values"}, "both",
                                 "What is rebuilt; the other stays exact in all layers."),
            },
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<EchoKv>(values);
        },
        .budget_of = BudgetOf::bytes,
        .own_share = [](const ParameterValues& values) -> std::optional<double> {
            try {
                const double ratio = read_echo_layout(values.text("maps")).model_ratio();
                return values.text("rebuild") == "both" ? ratio : (1.0 + ratio) / 2.0;
            } catch (const EchoMapsError&) {
                return 1.0;  // `begin` says what is wrong with the file
            }
        },
        .needs_file = true,
    };
}

}  // namespace kvscope::policies
