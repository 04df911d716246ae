#pragma once

#include <string_view>

namespace kvscope::cli {

/// Handles SIGINT and SIGTERM while it exists; only one may exist. The first signal requests a stop (`stop_is_wanted`).
/// A second signal, or one second without an end, ends the program. Signals ignored at the start stay ignored.
class StopSignals {
 public:
    StopSignals();
    ~StopSignals();
    /// Sets the message for stderr if the program does not end in time, such as "stopped; nothing was written".
    void set_last_words(std::string_view words);
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;
};

bool stop_is_wanted();

/// Records a stop signal that was received elsewhere.
void note_stop_signal(int signal);

/// Ends the program with the received signal, if any, so that a shell loop over commands ends, too. Call it last.
void end_by_noted_signal();

/// Ends the program with this signal's default action.
[[noreturn]] void end_by_signal(int signal);

}  // namespace kvscope::cli
