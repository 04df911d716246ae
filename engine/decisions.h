#pragma once

#include <span>

#include "engine/active_run.h"
#include "engine/common/progress.h"
#include "kernels/backend.h"

namespace kvscope::engine {

/// Lets all runs with a pending decision (ActiveRun::has_decision) select, in parallel if there are enough runs for the
/// threads. Then each run takes its selection, with shared copies of entries.
/// @param backend of the runs' model
/// @returns the seconds of selecting in parallel; 0 if runs selected one after the other
/// @throws exceptions that concern all runs (engine/device/guarded.h)
double finish_decisions(std::span<ActiveRun* const> runs, const kernels::Backend& backend, const Progress& progress);

}  // namespace kvscope::engine
