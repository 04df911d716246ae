#include "app/gui/window/end_signal.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace kvscope::gui {
namespace {

constexpr std::array signals = {SIGTERM, SIGINT, SIGHUP};
constexpr char asked_to_end = 1;
constexpr char no_longer_needed = 0;

std::array<int, 2> ends{-1, -1};  // pipe from the handler to the thread

bool tell(char what) {
    const int kept = errno;
    const bool told = write(ends[1], &what, 1) == 1;
    errno = kept;
    return told;
}

std::atomic<int> came{0};

void asked(int signal) {
    came = signal;
    if (!tell(asked_to_end)) std::signal(signal, SIG_DFL);
}

}  // namespace

EndSignal::EndSignal(std::function<void()> function) {
    came = 0;
    if (pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    thread_ = std::thread([function = std::move(function)] {
        char what = no_longer_needed;
        while (read(ends[0], &what, 1) < 0 && errno == EINTR) {
        }
        if (what != asked_to_end) return;
        function();
    });
    struct sigaction action {};
    action.sa_handler = asked;
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    for (const int signal : signals) {
        struct sigaction before {};
        sigaction(signal, nullptr, &before);
        if (before.sa_handler != SIG_IGN)
            sigaction(signal, &action, nullptr);  // ignored signals stay ignored, e.g. SIGHUP with nohup
    }
}

int EndSignal::signal() const { return came; }

EndSignal::~EndSignal() {
    for (const int signal : signals) {
        struct sigaction now {};
        sigaction(signal, nullptr, &now);
        if (now.sa_handler == asked) std::signal(signal, SIG_DFL);
    }
    tell(no_longer_needed);
    thread_.join();
    for (int& end : ends) close(std::exchange(end, -1));
}

}  // namespace kvscope::gui
