#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/api/common_parameters.h"
#include "policies/api/definition.h"

namespace kvscope::policies {

/// Base of policies that keep the last `recent` entries and the best earlier entries, the same number in every row.
class ScoringPolicy : public Policy, public Gathers {
 public:
    void begin(const RunContext& context) override;
    void gather(LayerObservations& observations) override;
    [[nodiscard]] Selection select(LayerObservations& observations) override;
    [[nodiscard]] Selection select_from_scores(int layer, LayerScores scores) override;
    [[nodiscard]] Positions positions() const override { return positions_; }

 protected:
    explicit ScoringPolicy(const ParameterValues& values);

    /// Returns scores (R, N) of all positions. Entries with the highest scores are kept.
    [[nodiscard]] virtual std::vector<float> score(LayerObservations& observations) = 0;

    /// Returns the key under which runs share their scores, or an empty text if they share no scores. The key contains
    /// the policy's name and all parameters that affect the scores, but not the budget.
    [[nodiscard]] virtual std::string shared_as() const { return {}; }

    [[nodiscard]] const RunContext& context() const { return context_; }
    [[nodiscard]] Granularity granularity() const { return granularity_; }
    [[nodiscard]] int64_t recent() const { return recent_; }

 private:
    [[nodiscard]] Scores<float> scores_of(LayerObservations& observations);

    ParameterValues values_;
    Granularity granularity_;
    Positions positions_;
    RunContext context_;
    int64_t recent_ = 0;
    std::optional<Scores<float>> gathered_;
};

[[nodiscard]] Parameter recent_parameter();

/// Returns the number of last entries that are always kept, or 0 if `recent` is not declared.
[[nodiscard]] int64_t recent_entries(const ParameterValues& values, int64_t budget);

}  // namespace kvscope::policies
