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
[[nodiscard]] SummaryRequest summary_request(const FigureOptions& options, std::span<const Result> results);

/// Returns the summary that the options of the first trace choose. @throws as summary_request() and chosen_results()
[[nodiscard]] Summary chosen_summary(std::span<const TracePart> parts);

/// For FigureDefinition::check.
void check_summary(const trace::Reader& reader, const FigureOptions& options);

/// Returns "KL by policy and budget, for each task".
[[nodiscard]] std::string title_of_summary(const Summary& summary);

/// Returns the colors of the rows: those of their policy settings, or of the rows' numbers if rows are other settings.
[[nodiscard]] std::vector<LineStyle> styles_of_rows(const Summary& summary, std::span<const Result> results);

}  // namespace kvscope::analysis
