#pragma once

#include <filesystem>
#include <string_view>

namespace kvscope::gui {

/// Where the window's own files go: $XDG_STATE_HOME/kvscope or ~/.local/state/kvscope.
std::filesystem::path state_folder();

/// From now on a crash leaves `crash.log` in the state folder: the signal, version and commit, the last action, a back
/// trace. Nothing that was finished is lost: traces are on disk as soon as they are.
void install_crash_log();

/// Remembered for the crash log.
void note_last_action(std::string_view action);
std::string_view last_noted_action();

}  // namespace kvscope::gui
