#pragma once

#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// "1", "2", …: the trace's number among the open ones, in the order in which Runs lists them.
std::string badge_of(const Session& session, const Document& document);

/// In titles of figures on the screen: the trace's name, or "[1]" where that is too long for a title.
std::string title_of(const Session& session, const Document& document);

/// The run's label with that title in place of the trace's name.
std::string label_in_title(const Session& session, const RunKey& run);

}  // namespace kvscope::gui
