#include "app/gui/view/log.h"

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>

#include "app/gui/view/text_field.h"
#include "app/gui/view/view.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

class LogView : public View {
 public:
    void draw(Context& context) override {
        const size_t before = lines_.size();
        for (LogLine& line : log_lines_since(version_)) lines_.push_back(std::move(line));
        if (lines_.size() > most_lines) lines_.erase(lines_.begin(), lines_.end() - most_lines);
        const bool is_new = lines_.size() != before;
        if (lines_.empty()) return draw_nothing(context, "Nothing has happened yet. Opened files, runs and errors are listed here.");
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
        std::replace(text.begin(), text.end(), '\n', ' ');
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
    return {"log",        "Log",        "Opened files, runs and errors",
            Dock::bottom, Topic::files, make_view<LogView>,
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
