#pragma once

#include <string>
#include <vector>

#include "analysis/tables/table.h"
#include "policies/api/parameters.h"

namespace kvscope::cli {

/// Returns a table with one row per parameter of a policy or task.
[[nodiscard]] analysis::Table parameter_table(const std::string& name, const std::string& title,
                                              const std::vector<policies::Parameter>& parameters);

}  // namespace kvscope::cli
