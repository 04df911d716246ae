#pragma once

#include <filesystem>
#include <string_view>

namespace kvscope::gui {

/// Folder for the app's log files: $XDG_STATE_HOME/kvscope or ~/.local/state/kvscope.
std::filesystem::path state_folder();

/// Installs signal handlers that write `crash.log` to the state folder when the app crashes. The log contains the
/// signal, version, commit, last action and stack trace.
void install_crash_log();

/// Stores the user's last action for the crash log.
void note_last_action(std::string_view action);
std::string_view last_noted_action();

}  // namespace kvscope::gui
