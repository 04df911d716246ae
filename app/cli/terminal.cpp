#include "app/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "analysis/tables/terminal_text.h"
#include "app/cli/stop_signal.h"

namespace kvscope::cli {

void print_data(std::string_view data) {
    if (std::fwrite(data.data(), 1, data.size(), stdout) == data.size() && std::fflush(stdout) == 0) return;
    // The reader closed the pipe, and SIGPIPE is ignored.
    if (errno == EPIPE) end_by_signal(SIGPIPE);
    throw std::runtime_error(std::string("standard output cannot be written: ") + std::strerror(errno));
}

void print(std::string_view text) { print_data(analysis::terminal_text(text, analysis::Lines::several)); }

void print_to_stderr(std::string_view text) {
    const std::string line = analysis::terminal_text(text, analysis::Lines::several) + '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
}

std::string one_line(std::string_view text) { return analysis::terminal_text(text, analysis::Lines::one); }

size_t terminal_width() {
    constexpr size_t narrowest = 40;  // narrower tables are unreadable
    size_t columns = 0;
    if (const char* wanted = std::getenv("COLUMNS")) std::from_chars(wanted, wanted + std::strlen(wanted), columns);
    if (winsize size{}; columns == 0 && isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    return columns == 0 ? 0 : std::max(columns, narrowest);
}

}  // namespace kvscope::cli
