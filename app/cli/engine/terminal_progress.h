#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "app/cli/stop_signal.h"
#include "common/stopped.h"
#include "engine/common/progress.h"

namespace kvscope::cli {

/// Shows progress on stderr, as one updated line on a terminal and as separate lines elsewhere.
class TerminalProgress final : public engine::Progress {
 public:
    /// Returns the message that is printed if a stopped command does not end in time. Called when a phase begins.
    using StopMessage = std::function<std::string()>;
    explicit TerminalProgress(
        bool quiet, StopMessage last_words = [] { return "stopped; nothing was written"; });
    ~TerminalProgress() override;
    TerminalProgress(const TerminalProgress&) = delete;
    TerminalProgress& operator=(const TerminalProgress&) = delete;

    void begin(std::string_view phase, int64_t steps, std::string_view unit) override;
    void advance(int64_t done) override;
    void message(std::string_view text) override;
    [[nodiscard]] std::stop_token stop_token() const override { return signals_.stop_token(); }

    /// Sets the text before each phase, such as "2/5" for the second of five prompts.
    void set_part(std::string_view part) { part_ = part; }
    /// Sets the text after the step count until the next phase, such as "loss 0.021".
    void set_note(std::string_view note) { note_ = note; }

    /// Prints a warning, also with --quiet.
    void warning(std::string_view text);

 private:
    void clear_line();

    StopSignals signals_;
    StopMessage last_words_;
    bool quiet_;
    bool terminal_;
    bool line_open_ = false;
    std::string part_, phase_, unit_, note_;
    int64_t steps_ = 0;
    std::chrono::steady_clock::time_point start_;
    std::chrono::steady_clock::time_point shown_;
};

/// Returns a duration as "01:15" or "2:05:30".
[[nodiscard]] std::string clock_text(double seconds);

/// Removes the trace of a stopped command if it has no results. @throws std::runtime_error always, with a message
[[noreturn]] void end_stopped(const std::filesystem::path& output);

/// Returns the result of action(), or calls end_stopped() if the user stops the action.
template <class Action>
[[nodiscard]] auto run_unless_stopped(const std::filesystem::path& output, const Action& action) {
    try {
        return action();
    } catch (const Stopped&) {
        end_stopped(output);
    }
}

/// Returns a function that returns the message of end_stopped() for the trace's present contents.
[[nodiscard]] TerminalProgress::StopMessage make_stop_message_function(const std::filesystem::path& output);

}  // namespace kvscope::cli
