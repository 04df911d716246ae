#pragma once

#include <span>

#include "engine/active_run.h"
#include "engine/common/progress.h"
#include "kernels/backend.h"

namespace kvscope::engine {

/// Completes the pending decisions of all runs, in parallel if there are enough runs.
/// @returns the seconds of parallel selection; 0 if runs selected one after the other
/// @throws exceptions that concern all runs (engine/device/catch_single_run_failure.h)
[[nodiscard]] double finish_pending_decisions(std::span<ActiveRun* const> runs, const kernels::Backend& backend,
                                              const Progress& progress);

}  // namespace kvscope::engine
