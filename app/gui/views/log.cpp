#include <fmt/chrono.h>
#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "analysis/tables/terminal_text.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/view.h"
#include "common/json.h"

namespace kvscope::gui {

namespace {

enum class LogLevel { info, warning, error };

struct LogLine {
    std::chrono::system_clock::time_point time;
    LogLevel level = LogLevel::info;
    std::string text;
};

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

/// Starts to keep the last 5,000 lines of spdlog's default logger. Call once, before other threads log.
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

/// Returns the lines logged since `version` and updates `version`. Can be called from any thread.
std::vector<LogLine> log_lines_since(uint64_t& version) { return ring()->since(version); }

/// Formats a line as text, e.g. "12:03:59.123 warning text".
std::string log_line_text(const LogLine& line) {
    const auto milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(line.time.time_since_epoch()).count() % 1000;
    const char* level = line.level == LogLevel::error ? "error" : line.level == LogLevel::warning ? "warning" : "";
    return fmt::format("{:%H:%M:%S}.{:03}  {:<7}  {}", fmt::localtime(std::chrono::system_clock::to_time_t(line.time)),
                       milliseconds, level, line.text);
}

class LogView : public View {
 public:
    void draw(Context& context) override {
        const size_t before = lines_.size();
        for (LogLine& line : log_lines_since(version_)) lines_.push_back(std::move(line));
        if (lines_.size() > most_lines) lines_.erase(lines_.begin(), lines_.end() - most_lines);
        const bool is_new = lines_.size() != before;
        if (lines_.empty())
            return draw_nothing(context, "Nothing has happened yet. Opened files, runs and errors are listed here.");
        draw_header();
        const auto shown = filtered();
        if (shown.empty()) {
            draw_nothing(context, fmt::format("None of {} lines matches the filter.", lines_.size()));
            return;
        }
        ImGui::PushFont(context.fonts.mono, 0);
        if (ImGui::BeginChild("lines", {0, 0}, ImGuiChildFlags_None, ImGuiWindowFlags_HorizontalScrollbar)) {
            const bool at_end = ImGui::GetScrollY() >= ImGui::GetScrollMaxY();
            ImGuiListClipper clipper;
            clipper.Begin(static_cast<int>(shown.size()));
            while (clipper.Step()) {
                for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
                    draw_line(context, *shown[static_cast<size_t>(i)], i);
            }
            if (at_end && is_new) ImGui::SetScrollHereY(1);
        }
        ImGui::EndChild();
        ImGui::PopFont();
    }

    std::vector<std::string> commands() const override { return {"Copy"}; }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"type into the filter", "show only lines with this text"},
                {"click a line", "copy it"},
                {"Copy", "all visible lines"}};
    }
    void save(nlohmann::json& state) const override { state = {{"filter", filter_}, {"level", level_}}; }
    void load(const nlohmann::json& state) override {
        filter_ = state.value("filter", std::string());
        level_ = std::clamp(state.value("level", 0), 0, 2);
    }

 private:
    static constexpr ptrdiff_t most_lines = 5000;

    void draw_header() {
        const float em = ImGui::GetFontSize();
        ImGui::SetNextItemWidth(16 * em);
        text_field("##log filter", "filter", &filter_);
        ImGui::SameLine();
        ImGui::SetNextItemWidth(10 * em);
        ImGui::Combo("##log level", &level_, "everything\0warnings, errors\0errors\0");
        ImGui::SameLine();
        if (command_button("Copy##log")) {
            std::string text;
            for (const LogLine* line : filtered()) text += log_line_text(*line) + "\n";
            ImGui::SetClipboardText(text.c_str());
        }
    }

    std::vector<const LogLine*> filtered() const {
        std::vector<const LogLine*> shown;
        for (const LogLine& line : lines_) {
            const bool fits = filter_.empty() || line.text.find(filter_) != std::string::npos;
            if (fits && static_cast<int>(line.level) >= level_) shown.push_back(&line);
        }
        return shown;
    }

    static void draw_line(const Context& context, const LogLine& line, int number) {
        const ImVec4 color = line.level == LogLevel::error     ? context.theme.error
                             : line.level == LogLevel::warning ? context.theme.warning
                                                               : context.theme.ink;
        std::string text = log_line_text(line);
        std::ranges::replace(text, '\n', ' ');
        ImGui::PushID(number);
        ImGui::PushStyleColor(ImGuiCol_Text, color);
        if (ImGui::Selectable("##line", false, ImGuiSelectableFlags_AllowOverlap))
            ImGui::SetClipboardText(text.c_str());
        ImGui::SameLine(0, 0);
        ImGui::TextUnformatted(text.c_str());
        ImGui::PopStyleColor();
        ImGui::PopID();
    }

    std::vector<LogLine> lines_;
    uint64_t version_ = 0;
    std::string filter_;
    int level_ = 0;
};

}  // namespace

ViewKind log_view() {
    start_keeping_log_lines();
    return {"log", "Log", "Opened files, runs and errors", Dock::bottom, Topic::files, make_view<LogView>,
            R"(
--..########.###
--..#####.......
--..######.####.
--..####........
--..#######.##..
--..***.*******.
--..######......
--..####........)"};
}

}  // namespace kvscope::gui
