#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/drawing/figure_definition.h"
#include "analysis/results/result.h"
#include "analysis/results/summary.h"

namespace kvscope::analysis {

/// Option of figures and tables with numbers that may be fractions.
[[nodiscard]] FigureOption unit_option();
/// Returns the choice of unit_option(); nullopt: the default (SummaryRequest::in_percent).
/// @throws FigureError for another unit, or for a number without this choice
[[nodiscard]] std::optional<bool> is_in_percent(const FigureOptions& options, const Scalar& scalar);

/// Options of figures that show a number in rows, columns and blocks: runs, cells, rows, columns, blocks, against and
/// unit.
[[nodiscard]] std::vector<FigureOption> summary_options();

/// Options of tables: summary_options() and extra-columns.
[[nodiscard]] std::vector<FigureOption> summary_table_options();

struct ChosenResults {
    std::vector<Result> results;
    std::string validity;  ///< validity_of_tasks() of all results, chosen or not
};
/// Returns chosen_results() and their validity. @throws as chosen_results()
[[nodiscard]] ChosenResults chosen_and_judged_results(std::span<const TracePart> parts);

/// @throws FigureError for unknown names; NothingToShow if no run has the number
[[nodiscard]] SummaryRequest summary_request(const FigureOptions& options, const ChosenResults& chosen);

/// Returns the summary that the options of the first trace choose. @throws as summary_request() and chosen_results()
[[nodiscard]] Summary chosen_summary(std::span<const TracePart> parts);

/// For FigureDefinition::check.
void check_summary(const trace::Reader& reader, const FigureOptions& options);

}  // namespace kvscope::analysis
