#pragma once

#include <string>
#include <vector>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Which runs are shown beside the full cache, by one of them.
enum class Alone {
    run,     ///< itself
    budget,  ///< those of its budget: as many entries, or as large a share of the bytes
    policy,  ///< those of its policy with its parameters, at all budgets
};

/// Shows these runs of all open traces, and full ones, and hides the others.
void show_alone(Session& session, const RunKey& run, Alone which);

/// Shows these runs and full ones, and hides the others.
void show_alone(Session& session, const std::vector<RunKey>& runs);

void show_all(Session& session);

/// The runs that a person means by "only snapkv, k-vec, dapq 256": of each part between commas those whose label has
/// all its words, a policy's name or how it begins, or a budget; what stands behind the last part's name goes for the
/// parts that have a name alone, where there are such runs. Empty where the text does not begin with "only ", or a part
/// means no run.
std::vector<RunKey> typed_runs(const Session& session, const std::string& typed);

/// "Only budget 256", as in a menu.
std::string name_of(const Session& session, const RunKey& run, Alone which);

}  // namespace kvscope::gui
