#pragma once

#include <stop_token>
#include <string_view>
#include <thread>

namespace kvscope::cli {

/// Handles SIGINT and SIGTERM during its lifetime; only one object may exist. The first signal requests a stop. Another
/// signal ends the program, and so does work that continues for 1 s after the request. Ignored signals stay ignored.
class StopSignals {
 public:
    StopSignals();
    ~StopSignals();
    /// Sets the message for stderr if the program does not end in time, such as "stopped; nothing was written".
    void set_last_words(std::string_view words);
    [[nodiscard]] std::stop_token stop_token() const { return stop_.get_token(); }

 private:
    std::stop_source stop_;
    std::jthread thread_;  ///< requests the stop, because a signal handler must not
};

/// Records a stop signal that was received elsewhere.
void note_stop_signal(int signal);

/// Ends the program with the received signal, if any, so that a shell loop also ends. Call it last.
void end_by_noted_signal();

[[noreturn]] void end_by_signal(int signal);

}  // namespace kvscope::cli
