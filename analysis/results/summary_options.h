#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/drawing/figure_definition.h"
#include "analysis/results/summary.h"

namespace kvscope::analysis {

/// Options of figures that show a number in rows, columns and blocks: runs, cells, rows, columns, blocks and against.
[[nodiscard]] std::vector<FigureOption> summary_options();

/// @throws FigureError for unknown names; NothingToShow if no run has the number
[[nodiscard]] SummaryRequest summary_request(const FigureOptions& options, const ChosenResults& chosen);

/// Returns the summary that the options of the first trace choose. @throws as summary_request() and chosen_results()
[[nodiscard]] Summary chosen_summary(std::span<const TracePart> parts);

/// For FigureDefinition::check.
void check_summary(const trace::Reader& reader, const FigureOptions& options);

}  // namespace kvscope::analysis
