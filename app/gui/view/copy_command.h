#pragma once

#include <functional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Copies a command line to the clipboard and shows a notice with its beginning. Exceptions from `command` become a
/// notice.
/// @param notice receives a message and whether it is an error
void copy_command(const std::function<std::string()>& command,
                  const std::function<void(const std::string&, bool)>& notice);

/// Copies the command that repeats a run of a trace, or a what-if run.
void copy_command_of(const Session& session, const RunKey& run,
                     const std::function<void(const std::string&, bool)>& notice);

}  // namespace kvscope::gui
