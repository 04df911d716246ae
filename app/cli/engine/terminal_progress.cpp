#include "app/cli/engine/terminal_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "analysis/tables/terminal_text.h"
#include "app/cli/terminal.h"
#include "app/program/engine/prepared_job.h"
#include "trace/part_folder.h"

namespace kvscope::cli {

std::string clock_text(double seconds) {
    const auto whole = int64_t{std::llround(seconds)};
    return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                         : fmt::format("{:02}:{:02}", whole / 60, whole % 60);
}

TerminalProgress::TerminalProgress(bool quiet, StopMessage last_words)
    : last_words_(std::move(last_words)), quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {
    signals_.set_last_words(last_words_());
}

namespace {

enum class Finished { nothing, prompts, runs };

Finished finished_at(const std::filesystem::path& output) {
    try {
        const trace::Parts parts = trace::list_parts(trace::part_folder_of(output));
        if (!parts.runs.empty() || !parts.results.empty()) return Finished::runs;
        return parts.prompts.empty() ? Finished::nothing : Finished::prompts;
    } catch (const std::filesystem::filesystem_error&) {
        return Finished::nothing;  // the folder does not exist yet
    }
}

std::string stopped_message(const std::filesystem::path& output, Finished finished) {
    std::error_code error;
    if (finished == Finished::nothing && std::filesystem::is_regular_file(output, error))
        return fmt::format("stopped without new results; {} is unchanged, and the same command starts again",
                           output.string());
    if (finished == Finished::nothing) return "stopped without results; the same command starts from the beginning";
    if (finished == Finished::prompts)
        return fmt::format(
            "stopped before a run was finished; {}.part contains the measures of the prompt, and the same command "
            "repeats its prefill",
            output.string());
    return fmt::format("stopped; finished runs are in {}.part, and the same command resumes from them",
                       output.string());
}

}  // namespace

void end_stopped(const std::filesystem::path& output) {
    const std::string message = stopped_message(output, finished_at(output));
    program::remove_part_folder_without_prompts(output);
    throw std::runtime_error(message);
}

TerminalProgress::StopMessage make_stop_message_function(const std::filesystem::path& output) {
    return [output, finished = Finished::nothing]() mutable {
        if (finished != Finished::runs) finished = finished_at(output);
        return stopped_message(output, finished);
    };
}

namespace {

/// Ignores write errors, so that the work continues if stderr is closed.
void say(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

}  // namespace

TerminalProgress::~TerminalProgress() { clear_line(); }

void TerminalProgress::clear_line() {
    if (line_open_) say("\r\033[K");
    line_open_ = false;
}

void TerminalProgress::begin(std::string_view phase, int64_t steps, std::string_view unit) {
    signals_.set_last_words(last_words_());
    phase_ = phase;
    note_.clear();
    steps_ = steps;
    unit_ = unit;
    start_ = shown_ = std::chrono::steady_clock::now();
}

void TerminalProgress::advance(int64_t done) {
    if (quiet_) return;
    const auto now = std::chrono::steady_clock::now();
    const double since_shown = std::chrono::duration<double>(now - shown_).count();
    // The last step is always drawn: if the next phase reports no progress, the line would stay below 100 %.
    const bool shows_end = terminal_ && done == steps_;
    if (!shows_end && since_shown < (terminal_ ? 0.1 : 5.0)) return;
    shown_ = now;
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    const double left = done > 0 ? elapsed / static_cast<double>(done) * static_cast<double>(steps_ - done) : 0;
    const std::string line = analysis::terminal_text(
        fmt::format("{}{}{}: {}/{} {} [{}<{}]{}{}", part_, part_.empty() ? "" : " ", phase_, done, steps_, unit_,
                    clock_text(elapsed), clock_text(left), note_.empty() ? "" : ", ", note_),
        analysis::Lines::one);
    if (terminal_) {
        say(fmt::format("\r{}\033[K", line));
        line_open_ = true;
    } else {
        say(line + "\n");
    }
}

void TerminalProgress::message(std::string_view text) {
    if (!quiet_) warning(text);
}

void TerminalProgress::warning(std::string_view text) {
    clear_line();
    print_to_stderr(text);
}

}  // namespace kvscope::cli
