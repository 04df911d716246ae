#pragma once

#include <functional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Copies a command line and shows a notice with its beginning, or with the exception from `command`.
void copy_command(const std::function<std::string()>& command,
                  const std::function<void(const std::string&, bool)>& notice);

/// Copies the command that repeats a run of a trace, or a what-if run.
void copy_command_of(const Session& session, const RunKey& run,
                     const std::function<void(const std::string&, bool)>& notice);

}  // namespace kvscope::gui
