#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "policies/api/definition.h"
#include "policies/methods/channel_scores.h"

namespace kvscope::policies {

namespace {

/// Drops the key channels with the lowest channel_scores(), except in the last `recent` keys.
class Think : public Policy, public StoresParts {
 public:
    explicit Think(const ParameterValues& values)
        : window_(static_cast<int>(values.integer("window"))),
          recent_(values.integer("recent")),
          ratio_(values.automatic_real("ratio")) {}

    Needs needs() const override { return {.window_queries = window_}; }

    void begin(const RunContext& context) override {
        context_ = context;
        const int d = context.shape.head_dim;
        const auto n = static_cast<double>(context.n_tokens);
        n_pruned_ = std::max<int64_t>(context.n_tokens - recent_, 0);
        const double share = context.share_of_bytes();
        // The paper's code also rounds a given ratio down. The small constants compensate for rounding errors.
        const double dropped = ratio_        ? std::floor(*ratio_ * d + 1e-6)
                               : share < 1.0 ? std::ceil(dropped_for(share) - 1e-6)
                                             : 0.0;
        if (!ratio_ && (!(dropped < d) || (share < 1.0 && n_pruned_ == 0)))
            throw BudgetError(fmt::format(
                "a budget of {:.4g} % of the full cache is too small: this policy keeps every token and drops only key "
                "channels, except for the last {} tokens; it needs at least {:.4g} % for {} tokens",
                100.0 * share, recent_, least_percent(n, d), context.n_tokens));
        n_dropped_ = static_cast<int>(std::min(dropped, d - 1.0));
    }

    Selection select(LayerObservations& observations) override {
        LayerScores scores;
        scores.channel_scores = channel_scores(observations, window_);
        return select_from_scores(observations.layer, std::move(scores));
    }

    Selection select_from_scores(int layer, LayerScores scores) override {
        const auto d = static_cast<size_t>(context_.shape.head_dim);
        const auto rows = static_cast<size_t>(context_.shape.n_kv_heads);
        if (scores.channel_scores.size() != rows * d)
            throw ScoreError(fmt::format("layer {}: expected scores of {} channels, found {}", layer, rows * d,
                                         scores.channel_scores.size()));
        for (size_t i = 0; i < scores.channel_scores.size(); ++i)
            if (std::isnan(scores.channel_scores[i]))
                throw ScoreError(fmt::format("layer {}, head {}: the score of channel {} is NaN", layer, i / d, i % d));
        Selection selection = select_all_tokens(context_);
        selection.channel_scores = std::move(scores.channel_scores);
        if (stores_parts()) selection.stored = stored(selection);
        return selection;
    }

    bool stores_parts() const override { return n_dropped_ > 0 && n_pruned_ > 0; }

 private:
    /// Returns how many channels to drop for a share of bytes. The result accounts for whole keys and channel indices.
    double dropped_for(double share) const {
        const double d = context_.shape.head_dim, saved = 2.0 * (1.0 - share) * static_cast<double>(context_.n_tokens);
        return n_pruned_ > 0 ? d * (saved + 1.0) / (static_cast<double>(n_pruned_) + 1.0) : 0.0;
    }

    /// Returns the smallest possible share in percent, rounded up to a tenth. Each pruned key then keeps one channel.
    double least_percent(double n, int d) const {
        const double saved = std::max(static_cast<double>(n_pruned_) * (d - 1) - 1.0, 0.0);
        return std::ceil(1000.0 * (1.0 - saved / (2.0 * n * d))) / 10.0;
    }

    StoredLayer stored(const Selection& selection) const {
        const int d = context_.shape.head_dim;
        StoredLayer layer;
        for (size_t row = 0; row < selection.rows.size(); ++row) {
            const auto& all = selection.rows[row];
            const auto exact = all.begin() + static_cast<std::ptrdiff_t>(n_pruned_);
            StoredEntries entries;
            entries.positions.assign(all.begin(), exact);
            entries.keys.parts.push_back({.width = d - n_dropped_, .channels = kept_channels(selection, row)});
            entries.values.parts.push_back({.width = d});
            layer.rows.push_back({.stored = {std::move(entries)}, .plain = {exact, all.end()}});
        }
        return layer;
    }

    std::vector<uint16_t> kept_channels(const Selection& selection, size_t row) const {
        const auto d = static_cast<size_t>(context_.shape.head_dim);
        return best_channels(std::span(selection.channel_scores).subspan(row * d, d), static_cast<int>(d) - n_dropped_);
    }

    int window_;
    int64_t recent_;
    std::optional<double> ratio_;
    RunContext context_;
    int n_dropped_ = 0;     ///< dropped channels of a key
    int64_t n_pruned_ = 0;  ///< number of first entries that lose channels
};

}  // namespace

Definition think_definition() {
    return {
        .name = "think",
        .title = "ThinK",
        .paper = "Xu et al., ThinK: Thinner Key Cache by Query-Driven Pruning, ICLR 2025, arXiv:2407.21018",
        .summary =
            "Keeps every token. Keys keep only the channels that contribute most to the products with the window's "
            "queries. The channels are chosen per KV head. The last keys and all values stay whole.",
        .parameters =
            {
                integer_parameter("window", 32, {.low = 1},
                                  "Number of last prompt tokens whose queries rank the channels."),
                mark_as_after_scoring(automatic_real_parameter(
                    "ratio", "the ratio that meets the budget", {.low = 0.0, .high = 1.0, .high_open = true},
                    "Share of key channels that are dropped (0.4 in the paper). A given ratio replaces the budget. The "
                    "cache needs 1 - ratio / 2 of the full cache's bytes, and more for the last keys, which keep all "
                    "channels.")),
                mark_as_after_scoring(
                    integer_parameter("recent", 32, {.low = 0}, "Number of last prompt keys that keep all channels.")),
            },
        .create = make_policy<Think>,
        .budget_of = BudgetOf::bytes,
        .own_share = [](const ParameterValues& values) -> std::optional<double> {
            const auto ratio = values.automatic_real("ratio");
            if (!ratio) return std::nullopt;
            return 1.0 - *ratio / 2.0;
        },
        .needed_share = [](const ParameterValues& values, double asked, const CacheSize& size) -> double {
            if (!values.automatic_real("ratio")) return asked;
            const int64_t whole = std::min(values.integer("recent"), size.n_tokens);
            return asked + (1.0 - asked) * static_cast<double>(whole) / static_cast<double>(size.n_tokens);
        },
    };
}

}  // namespace kvscope::policies
