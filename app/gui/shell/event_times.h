#pragma once

#include <functional>
#include <optional>

namespace kvscope::gui {

/// The X server's kinds of events.
enum class SystemEvent { key_press = 2, key_release = 3, button_press = 4, button_release = 5 };

/// Notes from now on when keys and buttons were pressed by the X server's clock: GLFW hands them over without their
/// times, and after a slow frame all at once. Does nothing where the window is not the X server's: Wayland's times
/// stay inside GLFW.
/// @param clock seconds
void note_event_times(std::function<double()> clock);

/// When the first event of that kind and code happened that has been noted, by the clock; forgets it and those before
/// it. @param code of the key, or number of the button, as X counts them
/// @returns nullopt: it was not noted
std::optional<double> take_event_time(SystemEvent kind, int code);

}  // namespace kvscope::gui
