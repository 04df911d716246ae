#include "app/gui/window/crash_log.h"

#include <cxxabi.h>
#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "app/gui/window/elf_symbol_table.h"
#include "app/program/version.h"

namespace kvscope::gui {
namespace {

// Fixed memory, because the signal handler must not allocate.
std::array<char, 4096> log_path{};
std::array<char, 256> last_action{};
std::array<char, 128> program_version{};
ProgramSymbols symbols;

void put(int file, const char* text) {
    const size_t length = std::strlen(text);
    if (write(file, text, length) < 0) return;
}

constexpr std::array crashes = {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS};
constexpr unsigned patience = 5;  // seconds for steps that may hang after a crash

void put_hex(int file, size_t value) {
    std::array<char, 20> digits{};
    auto at = digits.size();
    do digits[--at] = "0123456789abcdef"[value % 16];
    while ((value /= 16) != 0);
    if (write(file, digits.data() + at, digits.size() - at) < 0) return;
}

/// Writes the linker names of the program's functions. Functions of libraries are written by backtrace_symbols_fd.
void put_stack(int file, std::span<void* const> frames) {
    for (void* const& frame : frames) {
        const auto [name, offset] = symbols.find(frame);
        if (!name) {
            backtrace_symbols_fd(&frame, 1, file);
            continue;
        }
        put(file, name);
        put(file, "+0x");
        put_hex(file, offset);
        put(file, "\n");
    }
}

/// Writes the demangled names of the program's functions. Allocates memory, so it must be the last step.
void put_stack_in_words(int file, std::span<void* const> frames) {
    put(file, "\nthe program's functions:\n");
    for (void* const frame : frames) {
        const char* name = symbols.find(frame).name;
        if (!name) continue;
        char* words = abi::__cxa_demangle(name, nullptr, nullptr, nullptr);
        put(file, words ? words : name);
        put(file, "\n");
        std::free(words);  // NOLINT(cppcoreguidelines-no-malloc): __cxa_demangle() allocates with malloc()
    }
}

void crashed(int signal) {
    for (const int each : crashes) std::signal(each, SIG_DFL);
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
        const std::span<void* const> stack(frames.data(), static_cast<size_t>(backtrace(frames.data(), frames.size())));
        put_stack(file, stack);
        put(STDERR_FILENO, "kvscope crashed. Details are in ");
        put(STDERR_FILENO, log_path.data());
        put(STDERR_FILENO, "\n");
        alarm(patience);
        put_stack_in_words(file, stack);
        close(file);
    }
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
    copy(program_version, std::string(program::version()) + " (commit " + program::commit() + ")");
    std::array<void*, 1> frame{};
    backtrace(frame.data(), 1);  // loads the library of backtrace() before the signal handler needs it
    symbols.open();
    for (const int signal : crashes) std::signal(signal, crashed);
}

void note_last_action(std::string_view action) { copy(last_action, action); }

std::string_view last_noted_action() { return last_action.data(); }

}  // namespace kvscope::gui
