#pragma once

#include <span>

#include "engine/active_run.h"
#include "engine/common/progress.h"
#include "kernels/backend.h"

namespace kvscope::engine {

/// Runs that have a decision at hand (ActiveRun::has_decision) choose, beside one another where there are enough of
/// them for the threads, and then, one after the other, take what they chose; entries of all of them are copied at
/// once.
/// @param backend that of the runs' model
/// @returns the seconds that passed while they chose beside one another; 0 where each did so by itself
/// @throws Cancelled, and what concerns all runs (engine/device/guarded.h)
double finish_decisions(std::span<ActiveRun* const> runs, const kernels::Backend& backend, const Progress& progress);

}  // namespace kvscope::engine
