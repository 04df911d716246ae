#pragma once

#include <string_view>

namespace kvscope::cli {

/// Handles SIGINT and SIGTERM during its lifetime; only one object may exist. The first signal makes stop_is_wanted()
/// true. A second signal, or one more second of work, ends the program. Ignored signals stay ignored.
class StopSignals {
 public:
    StopSignals();
    ~StopSignals();
    /// Sets the message for stderr if the program does not end in time, such as "stopped; nothing was written".
    void set_last_words(std::string_view words);
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;
};

[[nodiscard]] bool stop_is_wanted();

/// Records a stop signal that was received elsewhere.
void note_stop_signal(int signal);

/// Ends the program with the received signal, if any, so that a shell loop also ends. Call it last.
void end_by_noted_signal();

[[noreturn]] void end_by_signal(int signal);

}  // namespace kvscope::cli
