#pragma once

#include <functional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Copies a command line and says so, with as much of it as can be read at a glance. What `command` throws is told.
/// @param notice what a person should see, and whether it is an error
void copy_command(const std::function<std::string()>& command,
                  const std::function<void(const std::string&, bool)>& notice);

/// The command that makes a run of a trace, or a what-if, again.
void copy_command_of(const Session& session, const RunKey& run,
                     const std::function<void(const std::string&, bool)>& notice);

}  // namespace kvscope::gui
