#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::gui {

enum class LogLevel { info, warning, error };

struct LogLine {
    std::chrono::system_clock::time_point time;
    LogLevel level = LogLevel::info;
    std::string text;
};

/// Starts to keep the last 5,000 lines of spdlog's default logger. Call once, before other threads log.
void start_keeping_log_lines();

/// Returns the lines logged since `version` and updates `version`. Can be called from any thread.
[[nodiscard]] std::vector<LogLine> log_lines_since(uint64_t& version);

/// Formats a line as text, e.g. "12:03:59.123 warning text".
[[nodiscard]] std::string log_line_text(const LogLine& line);

}  // namespace kvscope::gui
