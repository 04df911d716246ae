#pragma once

#include <span>

#include "engine/active_run.h"
#include "engine/common/progress.h"
#include "kernels/backend.h"

namespace kvscope::engine {

/// Lets all runs with a pending decision select, in parallel if there are enough runs for the threads, and then take
/// their selections. @returns the seconds of selecting in parallel; 0 if runs selected one after the other
/// @throws exceptions that concern all runs (engine/device/guarded.h)
double finish_decisions(std::span<ActiveRun* const> runs, const kernels::Backend& backend, const Progress& progress);

}  // namespace kvscope::engine
