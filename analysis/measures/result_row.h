#pragma once

#include <span>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns the row of /results that describes a run. The columns of a task are empty or NaN. Numbers that are not
/// recorded are NaN; so are all measures and times of a failed run.
/// @param recall mean recall of the run; NaN if unknown
[[nodiscard]] trace::ResultRow result_row(const trace::ModelAttributes& model, const trace::PromptAttributes& prompt,
                                          const trace::RunRecord& run, double recall);

/// Returns the rows of these runs: stored rows (trace::Reader::stored_row), or rows that are computed from the recorded
/// data. Computed rows have no `data_hash`. @throws trace::TraceError for damaged data sets
[[nodiscard]] std::vector<trace::ResultRow> result_rows(const trace::Reader& reader, int prompt,
                                                        std::span<const int> runs);

/// Returns the rows of all runs of a prompt. @throws as result_rows()
[[nodiscard]] std::vector<trace::ResultRow> result_rows_of_prompt(const trace::Reader& reader, int prompt);

/// Like result_rows_of_prompt(), but reads only attributes, so that all measures are NaN.
[[nodiscard]] std::vector<trace::ResultRow> result_rows_without_measures(const trace::Reader& reader, int prompt);

/// Returns the size of a run's cache as a share of the full cache, or NaN if it is unknown. Uses predicted sizes if the
/// full run has no `bytes`. @param rows one per run of a prompt
[[nodiscard]] double share_of_full_bytes(std::span<const trace::ResultRow> rows, const trace::ResultRow& run);

}  // namespace kvscope::analysis
