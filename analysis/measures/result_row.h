#pragma once

#include <string>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns the SHA-256 of a prompt's text, 64 hexadecimal digits.
[[nodiscard]] std::string prompt_hash(const std::string& text);

/// Returns the row of /results that describes a run, without `prompt_hash`. The columns of a task are empty or NaN.
/// Numbers that are not recorded are NaN, and all measures and times of a failed run.
/// @param recall mean recall of the run; NaN if unknown
[[nodiscard]] trace::ResultRow result_row(const trace::ModelAttributes& model, const trace::PromptAttributes& prompt,
                                          const trace::RunRecord& run, double recall);

/// Computes one row per run of a prompt from the recorded data, also for traces without /results/prompts. `data_hash`
/// is empty until the table is stored.
/// @param with_measures whether to read data sets; otherwise the measures are NaN
/// @throws trace::TraceError for damaged data sets
[[nodiscard]] std::vector<trace::ResultRow> result_rows_of_prompt(const trace::Reader& reader, int prompt,
                                                                  bool with_measures = true);

}  // namespace kvscope::analysis
