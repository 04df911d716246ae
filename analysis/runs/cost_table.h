#pragma once

#include "analysis/tables/table.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns one row per run of a prompt: kept entries, costs and divergence from the full run. Unknown cells are empty.
/// kept_share = entries kept / (L R N); compression = 1 / bytes_share; KL in nats over `kl_steps` decode steps;
/// attention_kept and output_error are means over layers and heads; only isolated runs have speeds.
/// @throws FigureError if the trace has no such prompt
[[nodiscard]] Table cost_table(const trace::Reader& reader, int prompt);

}  // namespace kvscope::analysis
