#pragma once

#include <string>
#include <vector>

#include "analysis/drawing/figure_definition.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// @throws FigureError if the trace has no such prompt
void check_prompt(const trace::Reader& reader, int prompt);

/// Returns the runs that `options.runs` names by number, label or policy, in the order of the trace. By default, all
/// finished runs except `full`, or only `full` if no other run has finished.
/// @throws FigureError for an unknown name (with the known names) or a failed run; NothingToShow if no run has finished
std::vector<int> chosen_runs(const trace::Reader& reader, const FigureOptions& options);

/// Returns the runs A and B, in the order of options.runs; by default, the first two of chosen_runs().
/// @throws FigureError if options.runs does not name exactly two runs; NothingToShow if fewer than two exist
std::vector<int> compared_runs(const trace::Reader& reader, const FigureOptions& options);

/// Whether the figure compares two runs, A and B.
[[nodiscard]] bool compares_two_runs(const FigureDefinition& definition);

/// Returns the chosen layers in ascending order; all by default. @throws FigureError for an unknown layer
std::vector<int> chosen_layers(const trace::Reader& reader, const FigureOptions& options);

/// @throws as chosen_runs() and chosen_layers()
void check_runs_and_layers(const trace::Reader& reader, const FigureOptions& options);

/// Returns the chosen query heads in ascending order; none by default. @throws FigureError for an unknown head
std::vector<int> chosen_heads(const trace::Reader& reader, const FigureOptions& options);

/// Returns at most k evenly spaced numbers of 0 ... n-1, including the first and the last.
[[nodiscard]] std::vector<int> evenly_spaced(int n, int k);

/// Whether the chosen width is below 120 mm, so that panels are stacked.
[[nodiscard]] bool is_narrow_figure(const FigureOptions& options);

/// Returns the origin of a figure for its metadata, without paths: program, model, prompt and runs.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> figure_recipe(const trace::Reader& reader, int prompt,
                                                                             const std::vector<int>& runs);

/// Sets the properties that all figures take from trace and options: recipe, date of the data, title and size.
void complete_figure(Figure& figure, const trace::Reader& reader, const FigureOptions& options,
                     const std::vector<int>& runs);

}  // namespace kvscope::analysis
