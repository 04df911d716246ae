#pragma once

#include <functional>
#include <optional>

namespace kvscope::gui {

enum class SystemEvent { key_press = 2, key_release = 3, button_press = 4, button_release = 5 };

/// Starts to record when the X server received key and button events, in seconds of `clock`, because GLFW does not
/// report these times. Does nothing on Wayland.
void start_recording_event_times(std::function<double()> clock);

/// Removes and returns the time of the first recorded event of this kind and X11 code (key code or button number).
/// Earlier events are removed, too. Returns nullopt if there is no such event.
[[nodiscard]] std::optional<double> take_event_time(SystemEvent kind, int code);

}  // namespace kvscope::gui
