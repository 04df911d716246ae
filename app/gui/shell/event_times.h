#pragma once

#include <functional>
#include <optional>

namespace kvscope::gui {

/// Kinds of X11 events, with their numbers in the protocol.
enum class SystemEvent { key_press = 2, key_release = 3, button_press = 4, button_release = 5 };

/// Starts to record the times at which the X server received key and button events. GLFW does not pass these times on.
/// Does nothing on Wayland, where they are not accessible.
/// @param clock seconds
void note_event_times(std::function<double()> clock);

/// Returns the time of the first recorded event with this kind and code, and forgets it and all earlier events.
/// @param code X11 code of the key, or number of the button
/// @returns nullopt if no such event was recorded
std::optional<double> take_event_time(SystemEvent kind, int code);

}  // namespace kvscope::gui
