#pragma once

#include <filesystem>
#include <string_view>

namespace kvscope::gui {

/// Returns the folder for the app's log files: $XDG_STATE_HOME/kvscope or ~/.local/state/kvscope.
[[nodiscard]] std::filesystem::path state_folder();

/// Installs signal handlers that write `crash.log` (signal, version, commit, last action, stack) to the state folder.
void install_crash_log();

void note_last_action(std::string_view action);
[[nodiscard]] std::string_view last_noted_action();

}  // namespace kvscope::gui
