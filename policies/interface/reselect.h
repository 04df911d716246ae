#pragma once

#include <vector>

#include "policies/interface/policy.h"

namespace kvscope::policies {

/// The kept sets that recorded scores (one element per layer, empty scores where the policy ranks nothing) give under a
/// context: with the recorded run's own budget they are its kept sets; with another one they are the what-if.
/// @throws BudgetError, ScoreError and std::logic_error as Policy::begin and Policy::select_from_scores do;
///         SelectionError for what no cache can hold.
std::vector<Selection> reselect(const Definition& definition, const ParameterValues& values, const RunContext& context,
                                std::vector<LayerScores> scores);

}  // namespace kvscope::policies
