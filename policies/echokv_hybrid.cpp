
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "policies/bases/echo_policy.h"
#include "policies/methods/channel_scores.h"
#include "policies/methods/echo_encoder.h"

namespace kvscope::policies {

namespace {

int channels_left(const EchoLayout& layout) {
    const int d = layout.head_dim;
    return d - std::clamp(static_cast<int>(std::floor((1.0 - layout.ratio()) * d + 1e-6)), 0, d - 1);
}

/// Stores ThinK's channels of the keys and EchoKV's parts of the values, both at the ratio of EchoKV's maps. The first
/// `sinks` and last `recent` tokens stay exact.
class EchoKvHybrid : public EchoPolicy {
 public:
    explicit EchoKvHybrid(const ParameterValues& values)
        : EchoPolicy("echokv-hybrid", values), window_(static_cast<int>(values.integer("window"))) {}

    Needs needs() const override { return {.window_queries = window_}; }

    Selection select(LayerObservations& observations) override {
        std::vector<float> scores = channel_scores(observations, window_);
        rank(observations.layer, scores);
        Selection selection = all_tokens(observations);
        selection.channel_scores = std::move(scores);
        return selection;
    }

    StoredLayer store(const ReducedTokens& tokens) override {
        StoredLayer layer = described(tokens.layer, {tokens.positions.begin(), tokens.positions.end()},
                                      tokens.keys_before_rope, tokens.values, 0);
        std::vector<float> key(static_cast<size_t>(layout().head_dim));
        for (size_t head = 0; head < layer.rows.size(); ++head) {
            StoredPart& part = layer.rows[head].stored[0].keys.parts[0];
            for (int64_t i = 0; i < static_cast<int64_t>(tokens.positions.size()); ++i) {
                read_entry(tokens.keys, static_cast<int>(head), i, layout().head_dim, key.data());
                for (const uint16_t c : part.channels) part.numbers.push_back(key[c]);
            }
        }
        return layer;
    }

 private:
    void take(const EchoMaps& maps) override {
        values_ = EchoEncoder(maps, Projected::values);
        n_channels_ = channels_left(layout());
        channels_.clear();
    }

    bool describes(int) const override { return true; }

    void rank(int layer, const std::vector<float>& scores) {
        const auto d = static_cast<size_t>(layout().head_dim);
        auto& heads = channels_[layer];
        for (size_t head = 0; head * d < scores.size(); ++head)
            heads.push_back(best_channels(std::span(scores).subspan(head * d, d), n_channels_));
    }

    /// Returns the storage. The parts for keys contain channel indices, but no values.
    StoredLayer described(int layer, const std::vector<uint32_t>& positions, const EntriesView&,
                          const EntriesView& values, int64_t first) override {
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

    int window_;
    EchoEncoder values_;
    int n_channels_ = 0;                                          ///< kept channels of a key
    std::map<int, std::vector<std::vector<uint16_t>>> channels_;  ///< by layer, then by head
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
            "Keeps every token. Keys keep the channels that ThinK selects, and values are stored as in EchoKV. The "
            "ratio of EchoKV's maps applies to keys and values.",
        .parameters =
            {
                text_parameter("maps", "",
                               "Safetensors file with EchoKV's maps, written by `kvscope train-echo`. The file is "
                               "required and determines the compression ratio."),
                integer_parameter("window", 32, {.low = 1},
                                  "Number of last prompt tokens whose queries rank the key channels."),
                integer_parameter("sinks", 4, {.low = 0}, "Number of first tokens that stay exact."),
                integer_parameter(
                    "recent", 128, {.low = 0},
                    "Number of last tokens that stay exact. The ratio does not include the memory of these tokens. A "
                    "decoded token is compressed when it is no longer one of the last tokens."),
                storage_switching_parameters()[0],
                storage_switching_parameters()[1],
            },
        .create = make_policy<EchoKvHybrid>,
        .budget_of = BudgetOf::bytes,
        .own_share = [](const ParameterValues& values) -> std::optional<double> {
            if (values.text("form") == "full") return 1.0;
            try {
                const EchoLayout layout = read_echo_header(values.text("maps")).layout;
                const double keys = static_cast<double>(channels_left(layout)) / layout.head_dim;
                return (keys + layout.model_ratio()) / 2;
            } catch (const EchoMapsError&) {
                return 1.0;  // `begin` reports the error
            }
        },
        .needed_share = echo_needed_share,
        .needs_file = true,
    };
}

}  // namespace kvscope::policies
