#pragma once

#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Returns the number of a trace in this session: "1", "2", …. The number is not reused after the trace is closed.
[[nodiscard]] std::string trace_badge_of(const Document& document);

/// Returns the badge in brackets: "[2]".
[[nodiscard]] std::string badge_in_brackets(const Document& document);

/// Returns the badge of a trace for figure titles, followed by the trace's name if the name is short.
[[nodiscard]] std::string trace_title(const Session& session, const Document& document);

[[nodiscard]] std::string label_in_title(const Session& session, const RunKey& run);

}  // namespace kvscope::gui
