#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "policies/interface/echo_storage.h"
#include "policies/interface/policy.h"

namespace kvscope::policies {

namespace {

/// Keeps every token. The first layer of a group stores all of its keys (before RoPE) and values, the others the first
/// D_local of the D = G d numbers of each; the rest is a linear map of those two, trained beforehand. The first `sinks`
/// and the last `recent` tokens stay exact, decoded ones included: a token is reduced when it leaves the last ones.
class EchoKv : public Policy {
 public:
    explicit EchoKv(const ParameterValues& values)
        : path_(values.text("maps")),
          sinks_(values.integer("sinks")),
          recent_(values.integer("recent")),
          rebuilds_keys_(values.text("rebuild") != "values"),
          rebuilds_values_(values.text("rebuild") != "keys"),
          form_(values.text("form")),
          switches_(values.text("switches")) {}

    Needs needs() const override {
        Needs needs;
        needs.keys_before_rope = true;
        return needs;
    }

    void begin(const RunContext& context) override {
        context_ = context;
        switching_ = switching_of(form_, switches_);
        const auto maps = echo_maps_of("echokv", path_, context);
        layout_ = maps.layout;
        first_ = std::min<int64_t>(sinks_, context.n_tokens);
        end_ = switching_.begins_full ? first_ : std::max<int64_t>(context.n_tokens - recent_, first_);
        keys_ = EchoStorage(maps, Projected::keys);
        values_ = EchoStorage(maps, Projected::values);
    }

    bool stores_parts() const override { return end_ > first_ && layout_.ratio() < 1.0; }

    bool decides_in_order() const override { return true; }

    Selection select(LayerObservations& observations) override {
        std::vector<uint32_t> all(static_cast<size_t>(context_.n_tokens));
        std::iota(all.begin(), all.end(), 0u);
        Selection selection;
        selection.rows.assign(static_cast<size_t>(layout_.n_kv_heads), all);
        if (!stores_parts() || !echo_stores(layout_, observations.layer)) return selection;
        const auto first = static_cast<std::ptrdiff_t>(first_), end = static_cast<std::ptrdiff_t>(end_);
        StoredLayer stored = described(observations.layer, {all.begin() + first, all.begin() + end},
                                       observations.keys_before_rope, observations.values, first_);
        for (StoredRow& row : stored.rows) {
            row.plain.assign(all.begin(), all.begin() + first);
            row.plain.insert(row.plain.end(), all.begin() + end, all.end());
        }
        selection.stored = std::move(stored);
        return selection;
    }

    bool stores_while_decoding() const override { return layout_.ratio() < 1.0; }

    std::optional<WholeTokens> whole_tokens(int layer) const override {
        if (!echo_stores(layout_, layer)) return std::nullopt;
        return WholeTokens{sinks_, recent_};
    }

    Switching switching() const override { return switching_; }

    StoredLayer store(const LeavingTokens& tokens) override {
        StoredLayer layer = described(tokens.layer, {tokens.positions.begin(), tokens.positions.end()},
                                      tokens.keys_before_rope, tokens.values, 0);
        const auto give = [&](StoredVectors& vectors, const EntriesView& view, int head) {
            for (StoredPart& part : vectors.parts)
                if (!part.block) part.numbers = numbers_of(view, head, tokens.positions.size());
        };
        for (size_t head = 0; head < layer.rows.size(); ++head) {
            StoredEntries& entries = layer.rows[head].stored[0];
            give(entries.keys, tokens.keys, static_cast<int>(head));
            give(entries.values, tokens.values, static_cast<int>(head));
        }
        return layer;
    }

 private:
    /// Of tokens at these positions, which are those from `first` on of the views.
    StoredLayer described(int layer, const std::vector<uint32_t>& positions, const EntriesView& keys,
                          const EntriesView& values, int64_t first) {
        StoredLayer stored;
        const int64_t end = first + static_cast<int64_t>(positions.size());
        const std::vector<StoredVectors> whole(static_cast<size_t>(layout_.n_kv_heads),
                                               {.parts = {{.width = layout_.head_dim}}});
        const auto of_keys = rebuilds_keys_ ? keys_.store(layer, keys, first, end, stored) : whole;
        const auto of_values = rebuilds_values_ ? values_.store(layer, values, first, end, stored) : whole;
        for (size_t head = 0; head < whole.size(); ++head)
            stored.rows.push_back(
                {.stored = {{.positions = positions, .keys = of_keys[head], .values = of_values[head]}}});
        return stored;
    }

    std::vector<float> numbers_of(const EntriesView& view, int head, size_t n) const {
        const auto d = static_cast<size_t>(layout_.head_dim);
        std::vector<float> numbers(n * d);
        for (size_t i = 0; i < n; ++i)
            read_entry(view, head, static_cast<int64_t>(i), layout_.head_dim, numbers.data() + i * d);
        return numbers;
    }

    std::string path_;
    int64_t sinks_, recent_;
    bool rebuilds_keys_, rebuilds_values_;
    std::string form_, switches_;
    Switching switching_;
    RunContext context_;
    EchoLayout layout_;
    EchoStorage keys_, values_;
    int64_t first_ = 0, end_ = 0;  ///< tokens of the prompt that are not exact
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
                integer_parameter("recent", 128, {.low = 0},
                                  "Last tokens that stay exact, on top of the ratio; a decoded token is reduced, too, "
                                  "when it leaves them."),
                choice_parameter("rebuild", {"both", "keys", "values"}, "both",
                                 "What is rebuilt; the other stays exact in all layers."),
                switching_parameters()[0],
                switching_parameters()[1],
            },
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<EchoKv>(values);
        },
        .budget_of = BudgetOf::bytes,
        .own_share = [](const ParameterValues& values) -> std::optional<double> {
            if (values.text("form") == "full") return 1.0;
            const double ratio = echo_share(values.text("maps"));
            return values.text("rebuild") == "both" ? ratio : (1.0 + ratio) / 2.0;
        },
        .needs_file = true,
        .remark = "On a processor it decodes more slowly than the full cache: keys are worked out anew at each step.",
    };
}

}  // namespace kvscope::policies
