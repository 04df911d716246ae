#pragma once

#include <vector>

#include "policies/api/definition.h"

namespace kvscope::policies {

/// Returns each layer's kept entries for any budget, computed from recorded scores.
/// @throws BudgetError, ScoreError and std::logic_error as Policy::begin and Policy::select_from_scores do;
/// SelectionError for an invalid decision
std::vector<Selection> reselect(const Definition& definition, const ParameterValues& values, const RunContext& context,
                                std::vector<LayerScores> scores);

}  // namespace kvscope::policies
