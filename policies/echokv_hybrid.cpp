#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "policies/interface/channel_scores.h"
#include "policies/interface/echo_storage.h"
#include "policies/interface/policy.h"

namespace kvscope::policies {

namespace {

/// Of a key's; what a number such as 0.3 lacks in binary must not keep one more.
int channels_left(const EchoLayout& layout) {
    const int d = layout.head_dim;
    return d - std::clamp(static_cast<int>(std::floor((1.0 - layout.ratio()) * d + 1e-6)), 0, d - 1);
}

/// Keeps every token: of its keys ThinK's channels, of its values what EchoKV stores, both at the ratio of EchoKV's
/// maps. The first `sinks` and the last `recent` tokens stay exact, decoded ones included.
class EchoKvHybrid : public Policy {
 public:
    explicit EchoKvHybrid(const ParameterValues& values)
        : path_(values.text("maps")),
          window_(static_cast<int>(values.integer("window"))),
          sinks_(values.integer("sinks")),
          recent_(values.integer("recent")),
          form_(values.text("form")),
          switches_(values.text("switches")) {}

    Needs needs() const override {
        Needs needs;
        needs.window_queries = window_;
        return needs;
    }

    void begin(const RunContext& context) override {
        context_ = context;
        switching_ = switching_of(form_, switches_);
        const auto maps = echo_maps_of("echokv-hybrid", path_, context);
        layout_ = maps.layout;
        values_ = EchoStorage(maps, Projected::values);
        n_channels_ = channels_left(layout_);
        first_ = std::min<int64_t>(sinks_, context.n_tokens);
        end_ = switching_.begins_full ? first_ : std::max<int64_t>(context.n_tokens - recent_, first_);
        channels_.clear();
    }

    bool stores_parts() const override { return end_ > first_ && layout_.ratio() < 1.0; }

    bool decides_in_order() const override { return true; }

    Selection select(LayerObservations& observations) override {
        std::vector<uint32_t> all(static_cast<size_t>(context_.n_tokens));
        std::iota(all.begin(), all.end(), 0u);
        Selection selection;
        selection.rows.assign(static_cast<size_t>(layout_.n_kv_heads), all);
        selection.channel_scores = channel_scores(observations, window_);
        rank(observations.layer, selection.channel_scores);
        if (!stores_parts()) return selection;
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(first_);
        const auto end = all.begin() + static_cast<std::ptrdiff_t>(end_);
        StoredLayer stored = described(observations.layer, {first, end}, observations.values, first_);
        for (StoredRow& row : stored.rows) {
            row.plain.assign(all.begin(), first);
            row.plain.insert(row.plain.end(), end, all.end());
        }
        selection.stored = std::move(stored);
        return selection;
    }

    bool stores_while_decoding() const override { return layout_.ratio() < 1.0; }

    std::optional<WholeTokens> whole_tokens(int) const override { return WholeTokens{sinks_, recent_}; }

    Switching switching() const override { return switching_; }

    StoredLayer store(const LeavingTokens& tokens) override {
        StoredLayer layer =
            described(tokens.layer, {tokens.positions.begin(), tokens.positions.end()}, tokens.values, 0);
        std::vector<float> key(static_cast<size_t>(layout_.head_dim));
        for (size_t head = 0; head < layer.rows.size(); ++head) {
            StoredPart& part = layer.rows[head].stored[0].keys.parts[0];
            for (int64_t i = 0; i < static_cast<int64_t>(tokens.positions.size()); ++i) {
                read_entry(tokens.keys, static_cast<int>(head), i, layout_.head_dim, key.data());
                for (const uint16_t c : part.channels) part.numbers.push_back(key[c]);
            }
        }
        return layer;
    }

 private:
    void rank(int layer, const std::vector<float>& scores) {
        const auto d = static_cast<size_t>(layout_.head_dim);
        auto& heads = channels_[layer];
        for (size_t head = 0; head * d < scores.size(); ++head)
            heads.push_back(best_channels(std::span(scores).subspan(head * d, d), n_channels_));
    }

    /// Of tokens at these positions, which are those from `first` on of the values; keys without their numbers.
    StoredLayer described(int layer, const std::vector<uint32_t>& positions, const EntriesView& values, int64_t first) {
        StoredLayer stored;
        const auto of_values =
            values_.store(layer, values, first, first + static_cast<int64_t>(positions.size()), stored);
        for (size_t head = 0; head < of_values.size(); ++head) {
            StoredVectors keys;
            keys.parts.push_back({.width = n_channels_, .channels = channels_.at(layer)[head]});
            stored.rows.push_back(
                {.stored = {{.positions = positions, .keys = std::move(keys), .values = of_values[head]}}});
        }
        return stored;
    }

    std::string path_;
    int window_;
    int64_t sinks_, recent_;
    std::string form_, switches_;
    Switching switching_;
    RunContext context_;
    EchoLayout layout_;
    EchoStorage values_;
    int n_channels_ = 0;                                          ///< of a key
    std::map<int, std::vector<std::vector<uint16_t>>> channels_;  ///< of each layer and head
    int64_t first_ = 0, end_ = 0;                                 ///< tokens of the prompt that are not exact
};

}  // namespace

Definition echokv_hybrid_definition() {
    return {
        .name = "echokv-hybrid",
        .title = "EchoKV hybrid",
        .paper =
            "Wang et al., EchoKV: Efficient KV Cache Compression via Similarity-Based Reconstruction, 2026, "
            "github.com/noforit/EchoKV; keys as in Xu et al., ThinK, ICLR 2025, arXiv:2407.21018",
        .summary =
            "Keeps every token: of its keys the channels that ThinK keeps, of its values what EchoKV stores, both at "
            "the ratio of EchoKV's maps.",
        .parameters =
            {
                text_parameter("maps", "",
                               "Safetensors file of EchoKV's maps, as `kvscope train-echo` writes it; it decides the "
                               "ratio. Needed."),
                integer_parameter("window", 32, {.low = 1}, "Last prompt tokens whose queries rank the key channels."),
                integer_parameter("sinks", 4, {.low = 0}, "First tokens that stay exact."),
                integer_parameter("recent", 128, {.low = 0},
                                  "Last tokens that stay exact, on top of the ratio; a decoded token is reduced, too, "
                                  "when it leaves them."),
                switching_parameters()[0],
                switching_parameters()[1],
            },
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<EchoKvHybrid>(values);
        },
        .budget_of = BudgetOf::bytes,
        .own_share = [](const ParameterValues& values) -> std::optional<double> {
            if (values.text("form") == "full") return 1.0;
            try {
                const EchoLayout layout = read_echo_header(values.text("maps")).layout;
                const double keys = static_cast<double>(channels_left(layout)) / layout.head_dim;
                return (keys + layout.model_ratio()) / 2;
            } catch (const EchoMapsError&) {
                return 1.0;  // `begin` says what is wrong with the file
            }
        },
        .needs_file = true,
    };
}

}  // namespace kvscope::policies
