#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/interface/common_parameters.h"
#include "policies/interface/policy.h"

namespace kvscope::policies {

/// Base of policies that keep, in every row alike, the `recent` last entries and the best-scored ones of those before.
/// It reads the parameters `recent` (0 where it is not declared; `auto` is half of the budget, rounded down),
/// `granularity` and `positions` (where declared). A policy on top of it writes `needs` and `score`.
class ScoringPolicy : public Policy {
 public:
    /// @throws BudgetError for a budget that evicts something and is not above `recent`.
    void begin(const RunContext& context) override;
    bool gathers() const override { return true; }
    void gather(LayerObservations& observations) override;
    Selection select(LayerObservations& observations) override;
    Selection select_from_scores(int layer, LayerScores scores) override;
    Positions positions() const override { return positions_; }

 protected:
    explicit ScoringPolicy(const ParameterValues& values);

    /// (R, N), the highest stay, for all positions: which of them are recent depends on the budget alone.
    virtual std::vector<float> score(LayerObservations& observations) = 0;

    /// Where runs are to share their scores: what these depend on besides the observations, with the policy's name
    /// first. The budget must not be among it. Empty: each run has its own.
    virtual std::string shared_as() const { return {}; }

    const RunContext& context() const { return context_; }
    Granularity granularity() const { return granularity_; }
    int64_t recent() const { return recent_; }

 private:
    Scores<float> scores_of(LayerObservations& observations);

    ParameterValues values_;
    Granularity granularity_;
    Positions positions_;
    RunContext context_;
    int64_t recent_ = 0;
    std::optional<Scores<float>> gathered_;
};

/// The parameter with its `auto`.
Parameter recent_parameter();

/// The last entries that are kept without being ranked under a budget; 0 where `recent` is not declared.
int64_t recent_entries(const ParameterValues& values, int64_t budget);

}  // namespace kvscope::policies
