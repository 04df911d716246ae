#pragma once

#include "analysis/tables/table.h"

namespace kvscope::analysis {

/// Whether differences in this column of the cost table are meaningful. Those of run numbers, budgets and error bars
/// are not.
bool has_difference(const Column& column);

/// Returns the column of differences: "coverage_difference", titled "Δ Coverage".
Column difference_column(const Column& column);

/// Returns a − b, an integer if both are; empty if either is missing.
Cell difference_of(const Cell& a, const Cell& b);

enum class Change { none, better, worse };

/// Whether a difference is an improvement, according to Column::best.
Change change_of(const Column& column, const Cell& difference);

}  // namespace kvscope::analysis
