#pragma once

#include <string>
#include <vector>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Which runs are shown with the full runs, relative to a given run.
enum class Alone {
    run,     ///< the run itself
    budget,  ///< runs with the same budget: number of entries or share of the bytes
    policy,  ///< runs with the same policy and parameters, at all budgets
};

/// Shows these runs of all open traces and the full runs, and hides the others.
void show_alone(Session& session, const RunKey& run, Alone which);

/// Shows these runs and the full runs, and hides the others.
void show_alone(Session& session, const std::vector<RunKey>& runs);

void show_all(Session& session);

/// Returns the runs meant by a text such as "only snapkv, k-vec, dapq 256". Each part between commas selects the runs
/// whose label contains all of its words; a word may be a policy's name or its beginning, or a budget. The words after
/// the name in the last part also apply to parts that have only a name, if such runs exist. Returns nothing if the text
/// does not begin with "only " or a part matches no run.
std::vector<RunKey> typed_runs(const Session& session, const std::string& typed);

/// Returns the name of a menu entry: "Only budget 256".
std::string name_of(const Session& session, const RunKey& run, Alone which);

}  // namespace kvscope::gui
