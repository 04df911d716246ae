#pragma once

#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns the row of /results that describes a run. The columns of a task are empty or NaN. Numbers that are not
/// recorded are NaN, and all measures and times of a failed run.
/// @param recall mean recall of the run; NaN if unknown
[[nodiscard]] trace::ResultRow result_row(const trace::ModelAttributes& model, const trace::PromptAttributes& prompt,
                                          const trace::RunRecord& run, double recall);

/// Computes one row per run of a prompt from the recorded data, also for traces without /results/prompts.
[[nodiscard]] std::vector<trace::ResultRow> result_rows_of_prompt(const trace::Reader& reader, int prompt);

/// Computes the table /results/prompts: one row per prompt and run. `data_hash` is empty until the table is stored.
[[nodiscard]] std::vector<trace::ResultRow> result_rows_of_prompts(const trace::Reader& reader);

}  // namespace kvscope::analysis
