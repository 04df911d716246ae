#pragma once

#include "analysis/tables/table.h"

namespace kvscope::analysis {

/// Whether a difference of two runs is meaningful in this column of the cost table. It is not for the run's number, the
/// budget and error bars.
bool has_difference(const Column& column);

/// Returns the column of differences: "coverage_difference", titled "Δ Coverage".
Column difference_column(const Column& column);

/// Returns a − b, an integer if both are; empty if either is missing.
Cell difference_of(const Cell& a, const Cell& b);

enum class Change { none, better, worse };

/// Whether a difference is an improvement, according to Column::best.
Change change_of(const Column& column, const Cell& difference);

}  // namespace kvscope::analysis
