#pragma once

#include <string>
#include <vector>

#include "policies/interface/observations.h"
#include "policies/interface/policy_errors.h"

namespace kvscope::policies {

/// A file of head importances that is missing or does not fit the model: without it no head's budget is known.
class ImportanceError : public BudgetError {
 public:
    using BudgetError::BudgetError;
};

/// The importance of every query head (L, H) from a JSON file of the form that HeadKV publishes and `kvscope
/// profile-heads` writes: {"layer-head": [score, …], …}, a head's importance being the mean of its list.
/// @throws ImportanceError, which names the file, what was expected and what was found: no file, no such object, heads
///         missing or too many for the model, a score that is negative or no finite number, only zeros.
std::vector<double> read_head_importance(const std::string& path, const ModelShape& shape);

}  // namespace kvscope::policies
