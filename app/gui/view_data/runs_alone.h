#pragma once

#include <string>
#include <vector>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Choice of the runs that show_runs_alone() shows in addition to the full runs.
enum class Alone {
    run,     ///< the run itself
    budget,  ///< runs with the same budget: number of entries or share of the bytes
    policy,  ///< runs with the same policy and parameters, at all budgets
};

/// Shows these runs of all open traces and the full runs, and hides the others.
void show_runs_alone(Session& session, const RunKey& run, Alone which);

void show_runs_alone(Session& session, const std::vector<RunKey>& runs);

void show_all_runs(Session& session);

/// Returns the runs named in a text such as "only snapkv, k-vec, dapq 256". A name matches the runs whose labels have
/// all its words. A budget after the last name applies to all names if possible. Returns none if a name matches no run.
[[nodiscard]] std::vector<RunKey> parse_typed_runs(const Session& session, const std::string& typed);

[[nodiscard]] std::string show_runs_alone_label(const Session& session, const RunKey& run, Alone which);

}  // namespace kvscope::gui
