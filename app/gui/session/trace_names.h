#pragma once

#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Returns the number of a trace in this session: "1", "2", …. It is not reused after the trace is closed.
std::string badge_of(const Document& document);

/// Returns the badge as used in text: "[2]".
std::string badge_in_text(const Document& document);

/// Returns the badge and, if it is short enough, the name of the trace. Used in titles of figures on the screen.
std::string title_of(const Session& session, const Document& document);

/// Returns the run's label with title_of() instead of the trace's name.
std::string label_in_title(const Session& session, const RunKey& run);

}  // namespace kvscope::gui
