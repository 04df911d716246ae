#pragma once

#include <string>
#include <vector>

#include "policies/api/observations.h"
#include "policies/api/policy_errors.h"

namespace kvscope::policies {

/// A file of head importances is missing or does not fit the model.
class ImportanceError : public BudgetError {
 public:
    using BudgetError::BudgetError;
};

/// Returns each query head's importance (L, H), the mean of its scores in JSON {"layer-head": [score, …], …}.
/// @throws ImportanceError that names the file, the expected content and the found content
std::vector<double> read_head_importance(const std::string& path, const ModelShape& shape);

}  // namespace kvscope::policies
