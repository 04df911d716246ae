#include "app/gui/view/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "analysis/tables/terminal_text.h"

namespace kvscope::gui {
namespace {

constexpr size_t most_lines = 5000;

class RingSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
    std::vector<LogLine> since(uint64_t& version) {
        const std::lock_guard lock(mutex_);
        const uint64_t first = n_logged_ - lines_.size();
        const uint64_t from = std::max(version, first);
        version = n_logged_;
        return {lines_.begin() + static_cast<ptrdiff_t>(from - first), lines_.end()};
    }

 private:
    void sink_it_(const spdlog::details::log_msg& message) override {
        LogLine line;
        line.time = message.time;
        line.level = message.level >= spdlog::level::err    ? LogLevel::error
                     : message.level == spdlog::level::warn ? LogLevel::warning
                                                            : LogLevel::info;
        line.text.assign(message.payload.data(), message.payload.size());
        lines_.push_back(std::move(line));
        ++n_logged_;
        if (lines_.size() > most_lines) lines_.pop_front();
    }
    void flush_() override {}

    std::deque<LogLine> lines_;
    uint64_t n_logged_ = 0;
};

/// Escapes control characters for the terminal, because logged text may come from traces and models.
class TerminalText : public spdlog::custom_flag_formatter {
 public:
    void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
        const std::string text =
            analysis::terminal_text({message.payload.data(), message.payload.size()}, analysis::Lines::several);
        out.append(text.data(), text.data() + text.size());
    }
    std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<TerminalText>(); }
};

const std::shared_ptr<RingSink>& ring() {
    static const auto sink = std::make_shared<RingSink>();
    return sink;
}

}  // namespace

void start_keeping_log_lines() {
    static const bool installed = [] {
        auto formatter = std::make_unique<spdlog::pattern_formatter>();
        formatter->add_flag<TerminalText>('*').set_pattern("[%Y-%m-%d %H:%M:%S.%e] [%^%l%$] %*");
        spdlog::default_logger()->set_formatter(std::move(formatter));
        spdlog::default_logger()->sinks().push_back(ring());
        return true;
    }();
    static_cast<void>(installed);
}

std::vector<LogLine> log_lines_since(uint64_t& version) { return ring()->since(version); }

std::string log_line_text(const LogLine& line) {
    const auto milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(line.time.time_since_epoch()).count() % 1000;
    const char* level = line.level == LogLevel::error ? "error" : line.level == LogLevel::warning ? "warning" : "";
    return fmt::format("{:%H:%M:%S}.{:03}  {:<7}  {}", fmt::localtime(std::chrono::system_clock::to_time_t(line.time)),
                       milliseconds, level, line.text);
}

}  // namespace kvscope::gui
