#include "policies/bases/scoring_policy.h"

#include <algorithm>
#include <utility>

#include "common/counted.h"
#include "policies/api/further_interfaces.h"
#include "policies/bases/score_operations.h"

namespace kvscope::policies {

ScoringPolicy::ScoringPolicy(const ParameterValues& values)
    : values_(values),
      granularity_(values.has("granularity") ? granularity_of(values) : Granularity::kv_head),
      positions_(values.has("positions") ? key_positions_of(values) : Positions::prompt) {}

void ScoringPolicy::begin(const RunContext& context) {
    recent_ = recent_entries(values_, context.budget);
    const bool evicts_while_decoding = dynamic_cast<const EvictsWhileDecoding*>(this) != nullptr;
    if (context.budget <= recent_ && (context.budget < context.n_tokens || evicts_while_decoding)) {
        throw BudgetError("a budget of " + counted(context.budget, "entry") + " is not above the " +
                          std::to_string(recent_) +
                          " recent entries, which are always kept. Give a larger budget or a smaller `recent`.");
    }
    context_ = context;
}

Scores<float> ScoringPolicy::scores_of(LayerObservations& observations) {
    const std::string key = shared_as();
    if (key.empty()) return score(observations);
    return *observations.shared<Scores<float>>(key, [&] { return score(observations); });
}

void ScoringPolicy::gather(LayerObservations& observations) {
    gathered_ = scores_of(observations);
    gathered_->announce_ranking(context_.n_tokens);
}

Selection ScoringPolicy::select(LayerObservations& observations) {
    Scores<float> scores = gathered_ ? *std::exchange(gathered_, std::nullopt) : scores_of(observations);
    return select_from_scores(observations.layer, {granularity_, std::move(scores), {}});
}

Selection ScoringPolicy::select_from_scores(int layer, LayerScores scores) {
    const int64_t n = context_.n_tokens;
    const int64_t budget = std::min(context_.budget, n);
    const int64_t recent = std::min(recent_, budget);
    const int rows = n_rows(context_.shape, granularity_);
    require_valid_scores(layer, scores.scores, rows, n - recent, n);
    Selection selection;
    selection.granularity = granularity_;
    selection.rows =
        best_and_tail(scores.scores, std::vector<int64_t>(static_cast<size_t>(rows), budget - recent), n - recent, n);
    selection.scores = std::move(scores.scores);
    return selection;
}

Parameter recent_parameter() {
    return mark_as_after_scoring(automatic_integer_parameter(
        "recent", "half of the budget, rounded down", {.low = 0},
        "Number of last entries that are always kept. The entries with the best scores get the rest of the budget."));
}

int64_t recent_entries(const ParameterValues& values, int64_t budget) {
    return values.has("recent") ? values.automatic_integer("recent").value_or(budget / 2) : 0;
}

}  // namespace kvscope::policies
