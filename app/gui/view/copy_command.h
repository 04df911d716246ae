#pragma once

#include <functional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Copies the command line that `command` returns. A notice shows the line's beginning, or an exception's message.
void copy_command_line(const std::function<std::string()>& command, const Notice& notice);

/// Copies the command that repeats a run of a trace, or a what-if run.
void copy_run_command(const Session& session, const RunKey& run, const Notice& notice);

}  // namespace kvscope::gui
