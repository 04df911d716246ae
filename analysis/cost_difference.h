#pragma once

#include "analysis/tables/table.h"

/// Differences between the numbers of two runs in the table of runs (analysis/cost_table.h).
namespace kvscope::analysis {

/// Whether one run's number less another's says something about the two: of what a run keeps, costs and changes, not of
/// its own number, its budget or an error bar.
bool has_difference(const Column& column);

/// The column that holds a column's differences: "coverage_difference", "Δ Coverage".
Column difference_column(const Column& column);

/// a − b of two numbers, whole where both are; empty where either is missing.
Cell difference_of(const Cell& a, const Cell& b);

enum class Change { none, better, worse };

/// What a difference means in a column of which the best is known.
Change change_of(const Column& column, const Cell& difference);

}  // namespace kvscope::analysis
