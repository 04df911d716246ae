#pragma once

#include <string>
#include <vector>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Choice of the runs to show with the full runs, relative to a given run.
enum class Alone {
    run,     ///< the run itself
    budget,  ///< runs with the same budget: number of entries or share of the bytes
    policy,  ///< runs with the same policy and parameters, at all budgets
};

/// Shows these runs of all open traces and the full runs, and hides the others.
void show_alone(Session& session, const RunKey& run, Alone which);

void show_alone(Session& session, const std::vector<RunKey>& runs);

void show_all(Session& session);

/// Returns the runs that a text such as "only snapkv, k-vec, dapq 256" names, or none if a part matches no run. A part
/// matches runs whose label has all its words. If possible, a budget in the last part applies to all parts.
std::vector<RunKey> typed_runs(const Session& session, const std::string& typed);

std::string name_of(const Session& session, const RunKey& run, Alone which);

}  // namespace kvscope::gui
