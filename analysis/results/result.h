#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/drawing/figure_definition.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// One row of results with the settings by which rows are grouped.
struct Result {
    trace::ResultRow row;
    std::string trace;    ///< name of the trace; empty if there is only one
    std::string task;     ///< task of the table, or "prompts"
    std::string setting;  ///< RowSettings::setting
    std::string budget;   ///< RowSettings::budget
    /// Equal for the rows of one sample, also in other traces if the row has a `sample_hash`. For samples of other
    /// programs, which have no hash, also if program, `sample_id` and answers are equal.
    std::string sample;
    double share_of_bytes = trace::ResultRow::unknown;  ///< of the full run's bytes, same sample

    [[nodiscard]] bool is_complete() const { return row.status == trace::schema::run::status_complete; }
    [[nodiscard]] bool is_full() const { return row.policy == full_policy; }
};

/// Whether policies saw the question in some rows, but not in others.
[[nodiscard]] bool asks_in_both_ways(std::span<const Result> results);

/// Appends the rows of a table. The rows of a sample begin with the full run's row.
void add_table(std::vector<Result>& results, std::span<const trace::ResultRow> rows, const std::string& task,
               const std::string& trace = "");

/// Returns the rows of all prompts, also of a trace that stores nothing else.
[[nodiscard]] std::vector<trace::ResultRow> rows_of_prompts(const trace::Reader& reader);

/// Returns the results of all prompts of a trace.
[[nodiscard]] std::vector<Result> results_of_prompts(const trace::Reader& reader, const std::string& trace = "");

/// Returns the results of all tasks of a trace, or of all prompts if the trace has no task.
[[nodiscard]] std::vector<Result> results_of_trace(const trace::Reader& reader, const std::string& trace = "");

/// Returns the results of several traces.
/// @throws NothingToShow if there are no results; FigureError if the prompt does not exist
[[nodiscard]] std::vector<Result> results_of_traces(std::span<const TracePart> parts);

/// Removes the results that `options.runs` does not name (RunName).
/// @param are_all whether these are the results of all traces of the figure
/// @throws FigureError for a name that no result has if these are all, otherwise only if no result has any name
void keep_chosen(std::vector<Result>& results, const FigureOptions& options, bool are_all = true);

/// Returns results_of_traces() that the options of the first trace choose. @throws as both functions above
[[nodiscard]] std::vector<Result> chosen_results(std::span<const TracePart> parts, bool are_all = true);

}  // namespace kvscope::analysis
