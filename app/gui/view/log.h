#pragma once

#include <chrono>
#include <cstddef>
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

/// From here on the window keeps what spdlog's default logger gets, its last 5,000 lines. Once is enough; before other
/// threads log.
void install_log();

/// What was logged since `version`, which is brought up to date: unchanged and empty where nothing was. From any
/// thread.
std::vector<LogLine> log_lines_since(uint64_t& version);

/// "12:03:59.123  warning  text"
std::string log_text(const LogLine& line);

}  // namespace kvscope::gui
