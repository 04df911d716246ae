#define GLFW_EXPOSE_NATIVE_X11
#include "app/gui/window/event_times.h"

#include <GLFW/glfw3.h>
#include <GLFW/glfw3native.h>
#include <X11/Xlib.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>

namespace kvscope::gui {
namespace {

/// Converts an X11 message to an event; see XESetWireToEvent in Xlibint.h.
using Reader = int (*)(Display*, XEvent*, void* message);
using SetReader = Reader (*)(Display*, int type, Reader);

struct Noted {
    int type;
    unsigned code;
    double at;  ///< time by the X server's clock, seconds
};

struct Times {
    std::function<double()> clock;
    std::array<Reader, MotionNotify + 1> readers{};
    std::deque<Noted> noted;
    uint32_t last = 0;  ///< X server time in milliseconds, which wraps around after 49 days
    double seconds = 0;
    /// Smallest difference between clock and server time so far, from an event that was read without delay.
    double offset = std::numeric_limits<double>::infinity();

    double take(Time milliseconds) {
        const auto now = static_cast<uint32_t>(milliseconds);
        seconds += static_cast<int32_t>(now - std::exchange(last, now)) * 1e-3;
        offset = std::min(offset, clock() - seconds);
        return seconds;
    }
};

Times& times() {
    static Times all;
    return all;
}

int read_event(Display* display, XEvent* event, void* message) {
    Times& all = times();
    constexpr uint8_t type_mask = 0x7f;  // the high bit marks events from other programs
    const int type = *static_cast<const uint8_t*>(message) & type_mask;
    const int result = all.readers[static_cast<size_t>(type)](display, event, message);
    if (!result) return result;
    if (event->xkey.time == CurrentTime) return result;
    const double at = all.take(event->xkey.time);
    constexpr size_t most = 10000;
    if (type != MotionNotify && all.noted.size() < most) all.noted.push_back({type, event->xkey.keycode, at});
    return result;
}

}  // namespace

void start_recording_event_times(std::function<double()> clock) {
    Times& all = times();
    all = {};
    all.clock = std::move(clock);
    if (glfwGetPlatform() != GLFW_PLATFORM_X11) return;
    void* library = dlopen("libX11.so.6", RTLD_LAZY | RTLD_NOLOAD);
    const auto set_reader = library ? reinterpret_cast<SetReader>(dlsym(library, "XESetWireToEvent")) : nullptr;
    Display* display = glfwGetX11Display();
    if (!set_reader || !display) return;
    for (const int type : {KeyPress, KeyRelease, ButtonPress, ButtonRelease, MotionNotify})
        all.readers[static_cast<size_t>(type)] = set_reader(display, type, read_event);
}

std::optional<double> take_event_time(SystemEvent kind, int code) {
    auto& noted = times().noted;
    const auto found = std::ranges::find_if(noted, [&](const Noted& one) {
        return one.type == static_cast<int>(kind) && one.code == static_cast<unsigned>(code);
    });
    if (found == noted.end()) return std::nullopt;
    const double at = found->at + times().offset;  // later events may have corrected the offset
    noted.erase(noted.begin(), found + 1);
    return at;
}

}  // namespace kvscope::gui
