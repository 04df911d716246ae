#pragma once

#include <string>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns the SHA-256 of a prompt's text, 64 hexadecimal digits.
[[nodiscard]] std::string prompt_hash(const std::string& text);

/// Returns the row of /results that describes a run, without `prompt_hash`. The columns of a task are empty or NaN.
/// Numbers that are not recorded are NaN; so are all measures and times of a failed run.
/// @param recall mean recall of the run; NaN if unknown
[[nodiscard]] trace::ResultRow result_row(const trace::ModelAttributes& model, const trace::PromptAttributes& prompt,
                                          const trace::RunRecord& run, double recall);

/// Computes one row per run of a prompt from the recorded data, also for traces without /results/prompts. The rows have
/// no `prompt_hash` and no `data_hash`. @throws trace::TraceError for damaged data sets
[[nodiscard]] std::vector<trace::ResultRow> result_rows_of_prompt(const trace::Reader& reader, int prompt);

/// Like result_rows_of_prompt(), but reads only attributes, so that all measures are NaN.
[[nodiscard]] std::vector<trace::ResultRow> result_rows_without_measures(const trace::Reader& reader, int prompt);

}  // namespace kvscope::analysis
