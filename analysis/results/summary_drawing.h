#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/drawing/figure.h"
#include "analysis/results/summary.h"

namespace kvscope::analysis {

/// Returns "KL by policy and budget, for each task".
[[nodiscard]] std::string title_of_summary(const Summary& summary);

/// Returns the colors of the rows: those of their policy settings, or of the rows' numbers if rows are other settings.
[[nodiscard]] std::vector<LineStyle> styles_of_rows(const Summary& summary, std::span<const Result> results);

/// Returns the mean, median and interval of a cell in Summary::unit(); nullopt if no value is known.
[[nodiscard]] std::optional<Estimate> drawn_estimate(const Summary& summary, const SummaryCell& cell);

/// Returns a panel with the block's name as title, at its place in a grid of `n_columns` columns.
[[nodiscard]] Panel panel_of_block(const Summary& summary, std::size_t block, std::size_t n_columns);

/// Sets the rows and columns of the grid for all blocks.
void arrange_blocks(Figure& figure, const Summary& summary, std::size_t n_columns);

}  // namespace kvscope::analysis
