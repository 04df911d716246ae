#pragma once

#include "analysis/tables/table.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns one row per run of a prompt: kept entries, costs, and differences from the full run. A failed run has only
/// its status and message; values that the trace lacks stay empty. Runs of one budget form a group (Row::group).
///
/// kept_share = entries kept / (L R N); coverage: of the whole model; kl_mean and kl_stderr_over_steps: nats, over
/// kl_steps decode steps; bytes_share = cache_bytes / the full run's; compression = 1 / bytes_share; attention_kept and
/// output_error: means over layers and heads; attention_kept and recall: empty unless is_measured_by_tokens();
/// select_s: seconds in the policy; time to first token and speed: isolated runs only.
/// @throws FigureError if the trace has no such prompt, and what trace::Reader throws
Table cost_table(const trace::Reader& reader, int prompt);

}  // namespace kvscope::analysis
