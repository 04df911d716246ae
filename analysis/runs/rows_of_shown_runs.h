#pragma once

#include <span>
#include <vector>

#include "analysis/runs/shown_runs.h"
#include "trace/records/records.h"

namespace kvscope::analysis {

/// Returns the row of each run, in the order of the runs. Measures of damaged data sets are NaN.
[[nodiscard]] std::vector<trace::ResultRow> rows_of_shown_runs(std::span<const ShownRun> runs);

}  // namespace kvscope::analysis
