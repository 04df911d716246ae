#pragma once

#include <span>

#include "analysis/results/summary.h"
#include "analysis/tables/table.h"

namespace kvscope::analysis {

/// Returns the cell's mean and interval, marked with "≈" if it is not distinguishable from the reference run.
/// @param cell with an estimate
[[nodiscard]] MeanCell mean_cell(const SummaryCell& cell);

/// Returns a row for each row of each block, and a column for each column. Bold and underlined numbers compare the
/// policies of a column in a block; full runs are never marked.
[[nodiscard]] Table summary_table(const Summary& summary);

/// Returns a row for each cell with runs. The column `differs` contains Summary::mixed. Its table for people is
/// summary_table().
[[nodiscard]] Table summary_numbers(const Summary& summary);

/// Returns KL, agreement, coverage, kept share, share of bytes and score of each policy and budget, without unknown
/// scalars.
[[nodiscard]] Table overview_of_results(std::span<const Result> results);

/// Returns the median times and memory of each length, subset, policy and budget.
[[nodiscard]] Table overview_of_costs(std::span<const Result> results);

}  // namespace kvscope::analysis
