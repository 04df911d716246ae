#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/gui/figure/figure_choices.h"
#include "app/gui/figure/figure_view.h"
#include "app/gui/view/widgets.h"
#include "common/full_policy.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

constexpr const char* click_hint = "Click to list the samples.";

class TaskScoresView : public FigureView {
 public:
    TaskScoresView()
        : FigureView({"task_scores",
                      "No open trace has scores. In the view Run, run a task, or prompts with answers (a JSONL file).",
                      "averaging the scores …", ""},
                     Kind::curves) {}

    std::optional<FigureRequest> figure(const Session& session) const override {
        FigureRequest request;
        request.figure = "task-scores";
        request.options.source = source_;
        for (const auto& document : session.documents()) {
            const trace::Reader& reader = *document->reader();
            if (reader.result_tasks().empty() && !reader.has_results(trace::schema::root::prompt_results)) continue;
            if (request.document < 0)
                request.document = document->id();
            else
                request.others.push_back({document->id(), request.options});
        }
        if (request.document < 0) return std::nullopt;
        return request;
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "the score of a policy at a budget"},
                {"click", "list the samples in Rankings; there, a row shows its answers and can be run again"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"double-click, F", "everything"}};
    }

    void save(nlohmann::json& state) const override {
        FigureView::save(state);
        state["source"] = source_;
    }
    void load(const nlohmann::json& state) override {
        FigureView::load(state);
        source_ = state.value("source", source_);
    }

 private:
    bool has_choices() const override { return true; }
    void draw_choices(Context&, const FigureRequest&) override {
        draw_source_choice("task_scores", analysis::figure_definition("task-scores"), source_);
    }
    void draw_figure(Context& context, const FigureRequest& request,
                     const std::shared_ptr<const PreparedFigure>& shown) override {
        quiet_text(shown->figure.caption);
        const float least = least_height(shown->figure) * ImGui::GetFontSize();
        const float height = std::max(ImGui::GetContentRegionAvail().y, least);
        ImGui::BeginChild("task scores", {0, 0}, ImGuiChildFlags_None, ImGuiWindowFlags_NoScrollWithMouse);
        FigureLook look;
        look.notes = false;  // the caption contains them
        const FigureHit hit = plot_.draw(context, "task score plot", {0, height}, shown, look);
        ImGui::EndChild();
        if (hit.panel < 0) return;
        const auto& panel = shown->figure.panels[static_cast<size_t>(hit.panel)];
        if (hit.clicked) list_samples(context, request, panel, hit);
        if (hit.row >= 0) draw_cell_tooltip(panel, hit);
        if (hit.shape < 0) return;
        const auto* line = std::get_if<analysis::Line>(&panel.shapes[static_cast<size_t>(hit.shape)]);
        const auto point = static_cast<size_t>(hit.point);
        if (!line || hit.point < 0 || point >= line->y.size()) return;
        const std::string interval =
            point < line->low.size() ? fmt::format(" [{:.1f}, {:.1f}]", line->low[point], line->high[point]) : "";
        ImGui::SetTooltip("%s @ %.4g\n%.1f %%%s\n%s", line->label.c_str(), line->x[point], line->y[point],
                          interval.c_str(), click_hint);
    }

    /// Shows the samples of the clicked cell, map or curve in the Rankings view.
    static void list_samples(Context& context, const FigureRequest& request, const analysis::Panel& panel,
                             const FigureHit& hit) {
        const size_t trace = panel.subject.trace;  // a trace without scores has no panel
        if (trace >= request.n_traces()) return;
        WantedSamples wanted{request.trace(trace).document, {}};
        if (hit.row >= 0 && panel.y.title.empty()) {
            wanted.runs = tick_label(panel.y, hit.row);
            const bool is_full = wanted.runs.substr(0, wanted.runs.find(',')) == full_policy;
            if (!is_full) wanted.runs += " @ " + tick_label(panel.x, hit.column);
        } else if (hit.row >= 0) {
            wanted.runs = panel.title;
        } else if (hit.shape >= 0) {
            const auto* line = std::get_if<analysis::Line>(&panel.shapes[static_cast<size_t>(hit.shape)]);
            if (line) wanted.runs = line->label;
        }
        if (wanted.runs.empty()) return;
        context.session.wanted_samples = std::move(wanted);
        context.host.show_view("rankings");
    }

    static std::string tick_label(const analysis::Axis& axis, int place) {
        const auto tick = static_cast<size_t>(place);
        return tick < axis.ticks.size() ? axis.ticks[tick].label : std::string();
    }

    static float least_height(const analysis::Figure& figure) {
        float lines = 0;
        for (const auto& panel : figure.panels) {
            const auto* map = std::get_if<analysis::HeatMap>(&panel.shapes.front());
            if (map && panel.column == 0) lines += 1.25f * static_cast<float>(map->rows) + (figure.rows > 1 ? 2.5f : 0);
        }
        return lines + 7;  // with axis and color bar
    }

    static void draw_cell_tooltip(const analysis::Panel& panel, const FigureHit& hit) {
        const std::string row =
            panel.y.title.empty() ? tick_label(panel.y, hit.row) : "depth " + tick_label(panel.y, hit.row) + " %";
        const std::string column = tick_label(panel.x, hit.column);
        ImGui::SetTooltip("%s%s%s\n%s %s\n%.1f %%\n%s", panel.title.c_str(), panel.title.empty() ? "" : "\n",
                          row.c_str(), panel.x.title.c_str(), column.c_str(), static_cast<double>(hit.value),
                          click_hint);
    }

    std::string source_ = "table";
};

}  // namespace

ViewKind task_scores_view() {
    return {"task_scores",
            "Task scores",
            "Scores of tasks, or of prompts with answers, by policy and budget, or by a needle's depth",
            Dock::center,
            Topic::results,
            make_view<TaskScoresView>,
            R"(
99.98.97.86.54.2
99.99.86.75.43.1
................
98.97.75.54.32.1
99.98.86.64.53.2
................
98.96.64.43.21.0
99.97.75.53.42.1)"};
}

}  // namespace kvscope::gui
