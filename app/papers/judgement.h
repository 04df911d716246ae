#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/results/result.h"
#include "analysis/statistics/bootstrap.h"
#include "app/papers/paper.h"

namespace kvscope::papers {

/// Fewest contexts with which a finding is judged.
inline constexpr std::size_t fewest_contexts = 20;

/// Whether the results of a trace confirm a finding, for one budget.
struct Judgement {
    enum class Outcome {
        holds,  ///< The paired difference has the paper's sign, and its 95 % interval excludes 0.
        does_not_hold,
        is_unknown,  ///< The results do not allow an answer, for the reason in `reason`.
    };
    std::string budget;  ///< empty if the names of the runs contain it
    Outcome outcome = Outcome::is_unknown;
    std::optional<double> of, than;                ///< means over the samples that both runs have
    std::optional<analysis::Estimate> difference;  ///< paired difference `of` − `than`
    std::string reason;
};

/// Returns one judgement per budget of the finding; one if it has no budgets.
/// @param results of the finding's trace
[[nodiscard]] std::vector<Judgement> judge(const Finding& finding, std::span<const analysis::Result> results);

/// Returns a judgement for a finding whose trace does not exist.
[[nodiscard]] std::vector<Judgement> not_judged(const Finding& finding, std::string_view reason);

/// Returns "holds", "does not hold" or "cannot be judged".
[[nodiscard]] std::string_view in_words(Judgement::Outcome outcome);

}  // namespace kvscope::papers
