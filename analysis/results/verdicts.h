#pragma once

#include <span>
#include <string>
#include <vector>

#include "trace/records/records.h"

namespace kvscope::analysis {

/// Returns sentences that say how far the rows of one table can be trusted: assess_task_validity() for scores, then
/// budgets of at least the prompt's length, budgets that runs exceed or do not use, runs that hold at least full's
/// bytes, runs whose answers all equal full's, and ties at the cut-off. Each kind of remark is one sentence with the
/// runs that it concerns.
/// @throws FigureError if there are no rows
[[nodiscard]] std::vector<std::string> verdicts(std::span<const trace::ResultRow> rows);

}  // namespace kvscope::analysis
