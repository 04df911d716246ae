#pragma once

#include <string>
#include <vector>

#include "policies/interface/observations.h"
#include "policies/interface/policy_errors.h"

namespace kvscope::policies {

/// A file of head importances is missing or does not fit the model.
class ImportanceError : public BudgetError {
 public:
    using BudgetError::BudgetError;
};

/// Reads the importance of every query head (L, H) from a JSON file {"layer-head": [score, …], …} by HeadKV or `kvscope
/// profile-heads`. A head's importance is the mean of its list.
/// @throws ImportanceError that names the file, the expected and the found content
std::vector<double> read_head_importance(const std::string& path, const ModelShape& shape);

}  // namespace kvscope::policies
