#pragma once

#include <string_view>

namespace kvscope::cli {

/// While one lives, the first SIGINT or SIGTERM is noted and the work asked to end (`stop_is_wanted`); what is finished
/// is on disk whenever that is. A second one, or a second's time without an end, ends the program at once. Signals that
/// the program was started with ignored stay so. One at a time.
class StopSignals {
 public:
    StopSignals();
    ~StopSignals();
    /// What is said on standard error where time was up, as "stopped; nothing was written".
    void set_last_words(std::string_view words);
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;
};

/// Whether a signal to stop was noted.
bool stop_is_wanted();

/// As if that signal had come while StopSignals lived.
void note_stop_signal(int signal);

/// Where a signal was noted, ends the program by it: a shell's loop over commands then ends, too. Last of all.
void end_by_noted_signal();

/// Ends the program by this signal, as if nothing had handled it.
[[noreturn]] void end_by_signal(int signal);

}  // namespace kvscope::cli
