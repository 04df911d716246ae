
#include <vector>

#include "policies/bases/echo_policy.h"
#include "policies/methods/echo_encoder.h"

namespace kvscope::policies {

namespace {

/// The first layer of a group stores all D = G d numbers of a token's keys (before RoPE) and values. Other layers store
/// D_local numbers, and trained maps predict the rest. The first `sinks` and last `recent` tokens stay exact.
class EchoKv : public EchoPolicy {
 public:
    explicit EchoKv(const ParameterValues& values)
        : EchoPolicy("echokv", values),
          rebuilds_keys_(values.text("rebuild") != "values"),
          rebuilds_values_(values.text("rebuild") != "keys") {}

    Needs needs() const override { return {.keys_before_rope = true}; }

    Selection select(LayerObservations& observations) override { return all_tokens(observations); }

    StoredLayer store(const ReducedTokens& tokens) override {
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
    void take(const EchoMaps& maps) override {
        keys_ = EchoEncoder(maps, Projected::keys);
        values_ = EchoEncoder(maps, Projected::values);
    }

    bool describes(int layer) const override { return is_layer_stored_in_parts(layout(), layer); }

    StoredLayer described(int layer, const std::vector<uint32_t>& positions, const EntriesView& keys,
                          const EntriesView& values, int64_t first) override {
        StoredLayer stored;
        const int64_t end = first + static_cast<int64_t>(positions.size());
        const std::vector<StoredVectors> whole(static_cast<size_t>(layout().n_kv_heads),
                                               {.parts = {{.width = layout().head_dim}}});
        const auto of_keys = rebuilds_keys_ ? keys_.store(layer, keys, first, end, stored) : whole;
        const auto of_values = rebuilds_values_ ? values_.store(layer, values, first, end, stored) : whole;
        for (size_t head = 0; head < whole.size(); ++head)
            stored.rows.push_back(
                {.stored = {{.positions = positions, .keys = of_keys[head], .values = of_values[head]}}});
        return stored;
    }

    std::vector<float> numbers_of(const EntriesView& view, int head, size_t n) const {
        const auto d = static_cast<size_t>(layout().head_dim);
        std::vector<float> numbers(n * d);
        for (size_t i = 0; i < n; ++i)
            read_entry(view, head, static_cast<int64_t>(i), layout().head_dim, numbers.data() + i * d);
        return numbers;
    }

    bool rebuilds_keys_, rebuilds_values_;
    EchoEncoder keys_, values_;
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
            "Keeps every token. Layers form groups. The first layer of a group stores whole keys and values. The other "
            "layers store a part of their keys and values. Maps that were trained for the model rebuild the rest.",
        .parameters =
            {
                text_parameter("maps", "",
                               "Safetensors file with EchoKV's maps, written by `kvscope train-echo`. The file is "
                               "required and determines the compression ratio."),
                integer_parameter("sinks", 4, {.low = 0}, "Number of first tokens that stay exact."),
                integer_parameter(
                    "recent", 128, {.low = 0},
                    "Number of last tokens that stay exact. The ratio does not include the memory of these tokens. A "
                    "decoded token is compressed when it is no longer one of the last tokens."),
                choice_parameter("rebuild", {"both", "keys", "values"}, "both",
                                 "Whether keys, values or both are rebuilt. With keys, values stay exact in all "
                                 "layers. With values, keys stay exact."),
                storage_switching_parameters()[0],
                storage_switching_parameters()[1],
            },
        .create = make_policy<EchoKv>,
        .budget_of = BudgetOf::bytes,
        .own_share = [](const ParameterValues& values) -> std::optional<double> {
            if (values.text("form") == "full") return 1.0;
            const double ratio = cache_share_with_echo_maps(values.text("maps"));
            return values.text("rebuild") == "both" ? ratio : (1.0 + ratio) / 2.0;
        },
        .needed_share = echo_needed_share,
        .needs_file = true,
        .remark =
            "On a CPU, decoding is slower than with the full cache, because keys are computed again at each "
            "step.",
    };
}

}  // namespace kvscope::policies
