#pragma once

#include "analysis/tables/table.h"

namespace kvscope::analysis {

/// Whether differences in this column of the cost table are meaningful; false for run numbers, budgets and error bars.
[[nodiscard]] bool has_meaningful_difference(const Column& column);

/// Returns the column for differences of `column`; for "Coverage" its title is "Δ Coverage".
[[nodiscard]] Column difference_column(const Column& column);

/// Returns a − b, as an integer if both cells are integers; empty if either cell is empty.
[[nodiscard]] Cell difference_of_cells(const Cell& a, const Cell& b);

enum class Change { none, better, worse };

/// Whether a difference is an improvement, according to Column::best.
[[nodiscard]] Change judge_as_better_or_worse(const Column& column, const Cell& difference);

}  // namespace kvscope::analysis
