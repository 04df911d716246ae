#pragma once

#include <string>

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

void show_all(Session& session);

/// "Only budget 256", as in a menu.
std::string name_of(const Session& session, const RunKey& run, Alone which);

}  // namespace kvscope::gui
