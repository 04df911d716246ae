#include "app/gui/crash_log.h"

#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "app/program/version.h"

namespace kvscope::gui {
namespace {

// Written before a crash, read in the signal handler: plain memory, no allocation.
std::array<char, 4096> log_path{};
std::array<char, 256> last_action{};
std::array<char, 128> program_version{};

void put(int file, const char* text) {
    const size_t length = std::strlen(text);
    if (write(file, text, length) < 0) return;
}

void crashed(int signal) {
    const int file = open(log_path.data(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0) {
        put(file, "kvscope ");
        put(file, program_version.data());
        put(file, "\nstopped by: ");
        put(file, sigabbrev_np(signal));
        put(file, "\nlast action: ");
        put(file, last_action.data());
        put(file, "\n");
        std::array<void*, 64> frames{};
        backtrace_symbols_fd(frames.data(), backtrace(frames.data(), frames.size()), file);
        close(file);
        put(STDERR_FILENO, "kvscope: crashed; what is known about it is in ");
        put(STDERR_FILENO, log_path.data());
        put(STDERR_FILENO, "\n");
    }
    std::signal(signal, SIG_DFL);
    raise(signal);
}

template <size_t n>
void copy(std::array<char, n>& to, std::string_view from) {
    const size_t length = std::min(from.size(), n - 1);
    std::copy_n(from.begin(), length, to.begin());
    to[length] = 0;
}

}  // namespace

std::filesystem::path state_folder() {
    if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state)
        return std::filesystem::path(state) / "kvscope";
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home ? home : ".") / ".local" / "state" / "kvscope";
}

void install_crash_log() {
    std::error_code error;
    std::filesystem::create_directories(state_folder(), error);
    copy(log_path, (state_folder() / "crash.log").string());
    copy(program_version, std::string(program::version()) + " (" + program::commit() + ")");
    std::array<void*, 1> frame{};
    backtrace(frame.data(), 1);  // loads what the handler needs
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS}) std::signal(signal, crashed);
}

void note_last_action(std::string_view action) { copy(last_action, action); }

std::string_view last_noted_action() { return last_action.data(); }

}  // namespace kvscope::gui
