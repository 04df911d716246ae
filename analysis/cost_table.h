#pragma once

#include "analysis/tables/table.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// One row a run of a prompt: what was kept and removed, what it cost, and how far the answers moved away from the full
/// cache's. `full` is the control. Runs that failed have their status and message and nothing else; what a trace does
/// not hold stays empty.
///
/// kept_share: entries kept / (L * R * N); removed_share: 1 - kept_share. coverage: of the whole model. kl_mean,
/// kl_stderr_over_steps in nats over kl_steps decode steps, agreement as a share of them. cache_bytes: really held,
/// beside what the kept entries need; bytes_share: of the full cache's; compression: 1 / bytes_share. attention_kept,
/// output_error: means over layers and heads. attention_kept and recall stay empty of a run that has all tokens
/// (is_measured_by_tokens). Runs of one budget are a group (Row::group). select_s: the policy's own seconds. First
/// token and speed: isolated runs only.
/// @throws FigureError when the trace has no such prompt, and what trace::Reader throws.
Table cost_table(const trace::Reader& reader, int prompt);

}  // namespace kvscope::analysis
