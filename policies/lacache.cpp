#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "common/counted.h"
#include "policies/api/common_parameters.h"
#include "policies/api/definition.h"

namespace kvscope::policies {

namespace {

constexpr int64_t most_sinks = 128;

int64_t divided_up(int64_t dividend, int64_t divisor) { return (dividend + divisor - 1) / divisor; }

/// Splits the middle entries into runs and keeps neighbors in each run. Their place in a run moves from layer to layer.
class LaCache : public Policy {
 public:
    explicit LaCache(const ParameterValues& values)
        : given_sinks_(values.automatic_integer("sinks")),
          span_(values.integer("span")),
          step_(span_ - std::min(values.integer("overlap"), span_ - 1)),
          positions_(key_positions_of(values)) {}

    void begin(const RunContext& context) override {
        const int64_t recent = context.shape.n_layers;
        if (context.budget < context.n_tokens && context.budget <= given_sinks_.value_or(0) + recent) {
            throw BudgetError("a budget of " + counted(context.budget, "entry") + " is not above the " +
                              (given_sinks_ ? std::to_string(*given_sinks_) + " sinks and the " : "") +
                              std::to_string(recent) +
                              " last entries (one per layer), which are always kept. Give a larger budget.");
        }
        context_ = context;
        sinks_ = given_sinks_.value_or(std::clamp<int64_t>(context.budget - recent - 1, 0, most_sinks));
    }

    Selection select(LayerObservations& observations) override { return select_from_scores(observations.layer, {}); }

    Selection select_from_scores(int layer, LayerScores) override {
        std::vector<uint32_t> kept(static_cast<size_t>(context_.n_tokens));
        std::iota(kept.begin(), kept.end(), 0u);
        int64_t excess = context_.n_tokens - context_.budget;
        while (excess > 0) {
            const int64_t cut = cut_runs(layer, excess, kept);
            if (cut == 0) {
                kept.erase(kept.begin() + sinks_, kept.begin() + sinks_ + excess);
                break;
            }
            excess -= cut;
        }
        Selection selection;
        selection.rows.assign(static_cast<size_t>(context_.shape.n_kv_heads), kept);
        return selection;
    }

    Positions positions() const override { return positions_; }

 private:
    /// Cuts each middle run once, oldest first, until `excess` entries are dropped. Returns how many were dropped.
    int64_t cut_runs(int layer, int64_t excess, std::vector<uint32_t>& kept) const {
        const int64_t n_layers = context_.shape.n_layers;
        const int64_t run = 1 + divided_up(std::max<int64_t>(n_layers - span_, 0), step_);
        const int64_t stay = std::min(divided_up(span_, step_), run);
        const int64_t first = layer % (run - stay + 1);
        const int64_t end = static_cast<int64_t>(kept.size()) - n_layers;
        std::vector<uint32_t> left(kept.begin(), kept.begin() + sinks_);
        int64_t cut = 0, at = sinks_;
        for (; at + run <= end && cut < excess; at += run) {
            for (int64_t i = 0; i < run; ++i) {
                const bool stays = (i >= first && i < first + stay) || cut == excess;
                if (stays) {
                    left.push_back(kept[static_cast<size_t>(at + i)]);
                } else {
                    ++cut;
                }
            }
        }
        left.insert(left.end(), kept.begin() + at, kept.end());
        kept = std::move(left);
        return cut;
    }

    std::optional<int64_t> given_sinks_;
    int64_t span_;
    int64_t step_;  ///< S - O, the layers by which rungs are shifted
    Positions positions_;
    RunContext context_;
    int64_t sinks_ = 0;
};

}  // namespace

Definition lacache_definition() {
    return {
        .name = "lacache",
        .title = "LaCache",
        .paper =
            "Shi et al., LaCache: Ladder-Shaped KV Caching for Efficient Long-Context Modeling of Large Language "
            "Models, ICML 2025, arXiv:2507.14204",
        .summary =
            "Keeps the sinks and as many last entries as the model has layers. The entries in between are divided into "
            "stretches of equal length. Each stretch keeps a few neighboring entries. The place of these entries in "
            "the stretch moves from layer to layer like the rungs of a ladder. Stretches are cut repeatedly, oldest "
            "first, until the budget is met. If no stretch can be cut, as with a span of all layers, the oldest "
            "entries after the sinks are dropped. The choice depends on positions alone, so there are no scores.",
        .parameters =
            {
                mark_as_after_scoring(automatic_integer_parameter(
                    "sinks", "128, but at most the budget minus the number of layers minus 1", {.low = 0},
                    "Number of first entries that are always kept.")),
                mark_as_after_scoring(integer_parameter("span", 16, {.low = 1},
                                                        "Number of layers that a rung of the ladder covers (S). With a "
                                                        "larger span, each cut of a stretch drops fewer entries.")),
                mark_as_after_scoring(
                    integer_parameter("overlap", 0, {.low = 0},
                                      "Number of layers that two neighboring rungs share (O), at most span - 1.")),
                key_positions_parameter(),
            },
        .create = make_policy<LaCache>,
    };
}

}  // namespace kvscope::policies
