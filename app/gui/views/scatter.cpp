#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <numeric>

#include "analysis/runs/cost_table.h"
#include "analysis/tables/table_format.h"
#include "app/gui/figure/figure_view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

using analysis::Column;
using analysis::ColumnType;

std::string name_of(const Column& column) {
    const std::string name = column.title.empty() ? column.name : column.title;
    return column.unit.empty() ? name : fmt::format("{} ({})", name, column.unit);
}

std::vector<Column> numeric_columns(const trace::Reader& reader, int prompt) {
    const auto table = analysis::cost_table(reader, prompt);
    std::vector<Column> columns;
    for (size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].type == ColumnType::text || table.columns[i].name == "run") continue;
        const bool any = std::ranges::any_of(
            table.rows, [&](const auto& row) { return !std::holds_alternative<std::monostate>(row.cells[i]); });
        if (any) columns.push_back(table.columns[i]);
    }
    return columns;
}

class ScatterView : public FigureView {
 public:
    ScatterView()
        : FigureView(
              {"scatter", open_trace_or_demo() + " to plot its runs against each other.", "computing the costs …", ""},
              Kind::curves, AutomaticComparison::traces) {}

    std::optional<FigureRequest> figure(const Session& session) const override {
        auto request = request_for(session, "cost");
        if (!request) return std::nullopt;
        if (request->difference) add_shown_runs(session, *request);
        request->options.columns = {x_, y_};
        for (TraceRequest& other : request->others) other.options.columns = request->options.columns;
        return request;
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "a run's two values; the run is highlighted in all views"},
                {"arrow",
                 "leads from the subtracted run to the other run: in “two − one” from trace one to trace two, in “A − "
                 "B” from B to A"},
                {"click", "select the run"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"double-click, F", "everything"}};
    }

    void save(nlohmann::json& state) const override {
        FigureView::save(state);
        state["x"] = x_;
        state["y"] = y_;
    }
    void load(const nlohmann::json& state) override {
        FigureView::load(state);
        x_ = state.value("x", x_);
        y_ = state.value("y", y_);
    }

 private:
    static void add_shown_runs(const Session& session, FigureRequest& request) {
        for (const RunKey& run : session.visible_runs()) {
            TraceRequest& other = request.others.front();
            if (request.document == other.document) continue;
            for (auto* side : {&request.runs, &other.runs}) {
                const int document = side == &request.runs ? request.document : other.document;
                const bool is_listed = std::ranges::find(*side, run.run) != side->end();
                if (run.document == document && !is_listed) side->push_back(run.run);
            }
        }
    }

    bool has_choices() const override { return true; }
    void draw_choices(Context& context, const FigureRequest& request) override {
        Session& session = context.session;
        const Document& document = *session.document(request.document);
        const auto answer = session.tasks.ask(
            columns_, fmt::format("{} {}", request.document, document.prompt), document.runs_stamp(document.prompt),
            [reader = document.reader(), prompt = document.prompt](const std::stop_token& stop) {
                return numeric_columns(reader->with_stop(stop), prompt);
            });
        const std::vector<Column> none;
        const std::vector<Column>& columns = answer.value ? *answer.value : none;
        choose("y##scatter", columns, y_);
        ImGui::SameLine();
        ImGui::TextDisabled("over");
        ImGui::SameLine();
        choose("x##scatter", columns, x_);
        ImGui::SameLine();
        if (ImGui::SmallButton("swap##scatter")) std::swap(x_, y_);
    }

    static void choose(const char* label, const std::vector<Column>& columns, std::string& chosen) {
        const auto now = std::ranges::find_if(columns, [&](const auto& c) { return c.name == chosen; });
        ImGui::SetNextItemWidth(11 * ImGui::GetFontSize());
        if (!ImGui::BeginCombo(fmt::format("##{}", label).c_str(),
                               now == columns.end() ? chosen.c_str() : name_of(*now).c_str()))
            return;
        for (const Column& column : columns)
            if (ImGui::Selectable(name_of(column).c_str(), column.name == chosen)) chosen = column.name;
        ImGui::EndCombo();
    }

    void draw_figure(Context& context, const FigureRequest& request,
                     const std::shared_ptr<const PreparedFigure>& shown) override {
        const Session& session = context.session;
        const auto& panel = shown->figure.panels.front();
        const Compared pairs = request.difference ? compared(session) : Compared{};
        const auto run_of = [&](size_t shape) {
            const RunKey run = shown->run_of(0, shape);
            return session.exists(run) ? run : RunKey{};  // the run may have been removed since the figure was made
        };
        FigureLook look;
        look.weight = [&](size_t, size_t shape) {
            const RunKey run = run_of(shape);
            if (!run.valid()) return 1.0f;
            return run == session.hover().run || run == session.cursor().run ? 1.5f : 1.0f;
        };
        look.overlay = [&](size_t, const PlotFrame& frame, ImDrawList* list) {
            draw_labels(context, panel, frame, list, run_of, pairs);
            for (size_t i = 0; i < panel.shapes.size(); ++i) {
                const auto* point = std::get_if<analysis::Scatter>(&panel.shapes[i]);
                const RunKey run = run_of(i);
                if (!point || !run.valid() || run != session.cursor().run) continue;
                list->AddCircle({frame.x_of(point->x[0]), frame.y_of(point->y[0])}, 0.7f * ImGui::GetFontSize(),
                                packed(context.theme.accent), 0, 1.5f);
            }
        };
        const FigureHit hit = plot_.draw(context, "runs plot", {0, 0}, shown, look);
        const RunKey run = hit.shape >= 0 ? run_of(static_cast<size_t>(hit.shape)) : RunKey{};
        if (!run.valid()) return;
        draw_tooltip(context, *shown, hit, run, pairs);
    }

    void draw_tooltip(const Context& context, const PreparedFigure& shown, const FigureHit& hit, const RunKey& run,
                      const Compared& pairs) const {
        const analysis::Panel& panel = shown.figure.panels.front();
        const auto row = [](const analysis::Axis& axis, double value) {
            plain_text(fmt::format("{}: {}", axis_title_with_unit(axis), analysis::format_real(value, 4)));
        };
        begin_tooltip_beside();
        ImGui::TextUnformatted(context.session.look(run).label.c_str());
        const auto& shape = panel.shapes[static_cast<size_t>(hit.shape)];
        if (const auto* point = std::get_if<analysis::Scatter>(&shape)) {
            row(panel.y, point->y[0]);
            row(panel.x, point->x[0]);
        }
        if (const auto* arrow = arrow_of(shown, shape, run, pairs)) {
            const auto delta = [&](const analysis::Axis& axis, const std::vector<double>& from_to) {
                plain_text(fmt::format("{}: {} → {}, {}{}", axis_title_with_unit(axis),
                                       analysis::format_real(from_to[0], 4), analysis::format_real(from_to[1], 4),
                                       from_to[1] > from_to[0] ? "+" : "",
                                       analysis::format_real(from_to[1] - from_to[0], 4)));
            };
            ImGui::Separator();
            disabled_text(fmt::format("{}: {}", pairs.title, arrow->label));
            delta(panel.y, arrow->y);
            delta(panel.x, arrow->x);
        }
        for (const std::string& column : {y_, x_}) {
            if (const char* words = measure_definition(column))
                ImGui::TextDisabled("%s: %s", axis_title_with_unit(column == y_ ? panel.y : panel.x).c_str(), words);
        }
        end_tooltip_beside();
    }

    /// Returns the arrow under the mouse, or the arrow to or from `run`. Returns nullptr if there is no arrow.
    static const analysis::Line* arrow_of(const PreparedFigure& shown, const analysis::Shape& hit, const RunKey& run,
                                          const Compared& pairs) {
        const auto* line = std::get_if<analysis::Line>(&hit);
        if (line && line->arrow) return line;
        const auto pair =
            std::ranges::find_if(pairs.pairs, [&](const ComparedRuns& each) { return each.a == run || each.b == run; });
        if (pair == pairs.pairs.end()) return nullptr;
        for (const auto& shape : shown.figure.panels.front().shapes) {
            const auto* arrow = std::get_if<analysis::Line>(&shape);
            if (arrow && arrow->arrow && shown.run_of(arrow->subject) == pair->a) return arrow;
        }
        return nullptr;
    }

    /// Draws labels that do not overlap. If an arrow joins two runs, only the run at the arrow's head has a label.
    template <class RunOf>
    static void draw_labels(const Context& context, const analysis::Panel& panel, const PlotFrame& frame,
                            ImDrawList* list, const RunOf& run_of, const Compared& pairs) {
        struct Box {
            ImVec2 min, max;
        };
        std::vector<Box> taken;
        const float em = ImGui::GetFontSize();
        const float size = 0.87f * em;
        const float mark = 0.3f * em;
        for (const auto& shape : panel.shapes) {
            const auto* point = std::get_if<analysis::Scatter>(&shape);
            if (!point) continue;
            const ImVec2 at{frame.x_of(point->x[0]), frame.y_of(point->y[0])};
            taken.push_back({{at.x - mark, at.y - mark}, {at.x + mark, at.y + mark}});
        }
        std::vector<size_t> order(panel.shapes.size());
        std::iota(order.begin(), order.end(), 0);
        const auto is_looked_at = [&](size_t shape) {
            const RunKey run = run_of(shape);
            return run.valid() && (run == context.session.cursor().run || run == context.session.hover().run);
        };
        std::stable_partition(order.begin(), order.end(), is_looked_at);
        for (const size_t i : order) {
            const auto* point = std::get_if<analysis::Scatter>(&panel.shapes[i]);
            if (!point) continue;
            const ImVec2 at{frame.x_of(point->x[0]), frame.y_of(point->y[0])};
            const RunKey run = run_of(i);
            if (std::ranges::any_of(pairs.pairs, [&](const auto& pair) { return pair.b == run; })) continue;
            const ComparedRuns* pair = pairs.of(run);
            const std::string& label = pair ? pair->label : point->label;
            const float width = ImGui::GetFont()->CalcTextSizeA(size, FLT_MAX, 0, label.c_str()).x;
            const bool has_ring = run.valid() && run == context.session.cursor().run;
            const float beside = (has_ring ? 1.0f : 0.6f) * em;
            std::vector<ImVec2> offsets{{beside, -0.55f * em},
                                        {-beside - width, -0.55f * em},
                                        {-width / 2, -beside - 0.9f * em},
                                        {-width / 2, beside}};
            if (is_looked_at(i)) {  // a label at a larger distance needs the color of its run
                offsets.insert(offsets.end(), {{em / 2, -beside - 0.9f * em},
                                               {-em / 2 - width, -beside - 0.9f * em},
                                               {em / 2, beside},
                                               {-em / 2 - width, beside}});
            }
            for (const ImVec2 offset : offsets) {
                const Box box{{at.x + offset.x, at.y + offset.y}, {at.x + offset.x + width, at.y + offset.y + size}};
                const bool outside = box.min.x < frame.min.x || box.max.x > frame.max.x || box.min.y < frame.min.y ||
                                     box.max.y > frame.max.y;
                const bool covers = std::ranges::any_of(taken, [&](const Box& other) {
                    return box.min.x < other.max.x && other.min.x < box.max.x && box.min.y < other.max.y &&
                           other.min.y < box.max.y;
                });
                if (outside || covers) continue;
                list->AddRectFilled(box.min, box.max, packed(context.theme.ground, 0.7f));
                list->AddText(ImGui::GetFont(), size, box.min,
                              packed(is_looked_at(i) ? context.theme.ink : context.theme.ink_quiet), label.c_str());
                taken.push_back(box);
                break;
            }
        }
    }

    std::string x_ = "coverage";
    std::string y_ = "kl_mean";
    TaskSlot<std::vector<Column>> columns_;
};

}  // namespace

ViewKind scatter_view() {
    return {
        "scatter",    "Scatter",      "Two columns of the table of runs plotted against each other, one point per run",
        Dock::bottom, Topic::results, make_view<ScatterView>,
        R"(
#...............
#..........**...
#......*........
#...*......99...
#......99.......
#..99......44...
#.....44........
################)"};
}

}  // namespace kvscope::gui
