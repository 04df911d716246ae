#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "app/cli/stop_signal.h"
#include "engine/common/engine_error.h"
#include "engine/common/progress.h"
#include "engine/files/stop_check.h"

namespace kvscope::cli {

/// Progress on standard error: one line that is rewritten on a terminal, plain lines else; with time left, in tqdm's
/// form. Ctrl-C and SIGTERM cancel at the next safe place, as stop_signal.h has it.
class TerminalProgress final : public engine::Progress {
 public:
    /// What is said by who is stopped and does not come to an end by itself, asked for as each phase begins.
    using LastWords = std::function<std::string()>;
    explicit TerminalProgress(
        bool quiet, LastWords last_words = [] { return "stopped; nothing was written"; });
    ~TerminalProgress() override;
    TerminalProgress(const TerminalProgress&) = delete;
    TerminalProgress& operator=(const TerminalProgress&) = delete;

    void begin(std::string_view phase, int64_t steps, std::string_view unit) override;
    void advance(int64_t done) override;
    void message(std::string_view text) override;
    bool cancelled() const override;

    /// Shown before each phase, as "2/5" for the second of five prompts; empty: nothing.
    void set_part(std::string_view part) { part_ = part; }
    /// Shown behind the steps until the next phase, as "loss 0.021".
    void set_note(std::string_view note) { note_ = note; }

    /// What is to be seen also by who asked for no progress: a run that failed, a file that was set aside.
    void warning(std::string_view text);

 private:
    void clear_line();

    StopSignals signals_;
    checkpoint::StopCheck stop_check_;  // reaches a model's template and tokenizer, which know no progress
    LastWords last_words_;
    bool quiet_;
    bool terminal_;
    bool line_open_ = false;
    std::string part_, phase_, unit_, note_;
    int64_t steps_ = 0;
    std::chrono::steady_clock::time_point start_;
    std::chrono::steady_clock::time_point shown_;
};

/// "01:15", "2:05:30".
std::string clock_text(double seconds);

/// Ends a command that was stopped while it wrote a trace: takes back one of which nothing was finished.
/// @throws std::runtime_error always, with whether anything was
[[noreturn]] void end_stopped(const std::filesystem::path& output);

/// What action() returns; where the person stops it, end_stopped().
template <class Action>
auto unless_stopped(const std::filesystem::path& output, const Action& action) {
    try {
        return action();
    } catch (const engine::Cancelled&) {
        end_stopped(output);
    }
}

/// What it says, as it is at the time of each call; the folder is looked at until something is there.
TerminalProgress::LastWords stopped_messages(const std::filesystem::path& output);

}  // namespace kvscope::cli
