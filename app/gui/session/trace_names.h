#pragma once

#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// "1", "2", …: the trace's number of this session. No other trace gets it, also after this one is closed.
std::string badge_of(const Document& document);

/// The badge as it stands in a text: "[2]".
std::string badge_in_text(const Document& document);

/// In titles of figures on the screen: the badge and, where it is not too long for a title, the trace's name.
std::string title_of(const Session& session, const Document& document);

/// The run's label with that title in place of the trace's name.
std::string label_in_title(const Session& session, const RunKey& run);

}  // namespace kvscope::gui
