#pragma once

#include <string>
#include <vector>

#include "analysis/figure_definition.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// @throws FigureError when the trace has no such prompt.
void check_prompt(const trace::Reader& reader, int prompt);

/// The runs that `options.runs` names, in the order of the trace and each once: a number, a label, or a policy's name
/// for all its runs. Without names: all finished runs but `full`, or `full` where there is nothing else.
/// @throws FigureError for a name that no run has (with those there are) or a failed run named; NothingToShow when no
/// run has finished.
std::vector<int> chosen_runs(const trace::Reader& reader, const FigureOptions& options);

/// A and B, in the order in which they were named; the first two of chosen_runs without names.
/// @throws FigureError for a prompt or run that is not there, or other than two; NothingToShow for less than two runs
std::vector<int> compared_runs(const trace::Reader& reader, const FigureOptions& options);

/// The layers that `options.layers` names, ascending and each once; all without names.
/// @throws FigureError when the model has no such layer.
std::vector<int> chosen_layers(const trace::Reader& reader, const FigureOptions& options);

/// What figures of runs by layers need: @throws as chosen_runs and chosen_layers
void check_runs_and_layers(const trace::Reader& reader, const FigureOptions& options);

/// The query heads that `options.heads` names, ascending and each once; none without names.
/// @throws FigureError when the model has no such head.
std::vector<int> chosen_heads(const trace::Reader& reader, const FigureOptions& options);

/// At most k of the numbers 0 ... n-1, evenly spaced, the first and the last among them.
std::vector<int> evenly_spaced(int n, int k);

/// The data set, or NothingToShow that names it. @param place of_model() or of_prompt()
void require_data(const trace::Reader& reader, trace::Place place, const trace::schema::DataSet& data_set);

/// Whether a width was asked for at which panels have to stand below each other: less than 120 mm.
bool is_narrow(const FigureOptions& options);

/// What a figure was made from, for its metadata: program, model, prompt (where the trace has any), runs with
/// parameters and budgets. No paths.
std::vector<std::pair<std::string, std::string>> figure_recipe(const trace::Reader& reader, int prompt,
                                                               const std::vector<int>& runs);

/// Sets what every figure takes from trace and options: recipe, date of the data, title, size.
void complete_figure(Figure& figure, const trace::Reader& reader, const FigureOptions& options,
                     const std::vector<int>& runs);

}  // namespace kvscope::analysis
