#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "analysis/number_text.h"
#include "analysis/table_format.h"
#include "app/gui/figure_view.h"
#include "app/gui/measures.h"

namespace kvscope::gui {
namespace {

/// Entries that each head of each layer keeps, one map per run on one scale.
class BudgetsView : public FigureView {
 public:
    BudgetsView()
        : FigureView({"budgets", "Open a trace or run the demo to see what each head keeps.",
                      "counting what each head keeps …", ""},
                     Kind::maps_of_runs) {}

    std::optional<FigureRequest> figure(const Session& session) const override {
        FigureRequest request = request_for(session, "budgets", true);
        if (request.document < 0) return std::nullopt;
        return request;
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "how many entries a head keeps"},
                {"click", "select the run, layer and head"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"wheel beside a map, Page Up, Page Down", "to the other maps"},
                {"double-click, F", "everything"}};
    }

 private:
    void draw_figure(Context& context, const FigureRequest& request,
                     const std::shared_ptr<const PreparedFigure>& shown) override {
        const Session& session = context.session;
        const auto by_label = runs_by_label(session, request);
        std::vector<RunKey> runs;
        for (const auto& panel : shown->figure.panels) {
            const auto found = by_label.find(panel.title);
            runs.push_back(request.difference ? *session.a : found == by_label.end() ? RunKey{} : found->second);
        }
        FigureLook look;
        const float em = ImGui::GetFontSize();
        look.columns = static_cast<size_t>(std::clamp(ImGui::GetContentRegionAvail().x / (26 * em), 1.0f, 4.0f));
        const auto place_of = [&](const RunKey& run) {
            const auto found = std::find(runs.begin(), runs.end(), run);
            return found == runs.end() || !run.valid() ? -1 : static_cast<int>(found - runs.begin());
        };
        look.framed = request.difference ? -1 : place_of(session.cursor().run);
        look.hovered = place_of(session.hover().run);
        look.overlay = [&](size_t panel, const PlotFrame& frame, ImDrawList* list) {
            const auto mark = [&](const Cursor& cursor, ImU32 color) {
                if (cursor.layer < 0) return;
                const int row = row_of(session, runs[panel], cursor);
                if (row >= 0)
                    draw_cell_mark(frame, list, cursor.layer, row, color);
                else
                    draw_column_mark(frame, list, cursor.layer, color);
            };
            mark(session.cursor(), packed(context.theme.accent));
            mark(session.hover(), packed(context.theme.hover, 0.5f));
        };
        const FigureHit hit = plot_.draw(context, "budget maps", {0, 0}, shown, look);
        if (hit.row >= 0) take_mouse(context, hit, runs[static_cast<size_t>(hit.panel)], request.difference);
    }

    static bool has_query_heads(const Session& session, const RunKey& run) {
        return session.exists(run) && session.attributes(run).granularity == trace::schema::run::granularity_query_head;
    }

    static int row_of(const Session& session, const RunKey& run, const Cursor& cursor) {
        return has_query_heads(session, run) ? cursor.query_head : cursor.kv_head;
    }

    static void take_mouse(Context& context, const FigureHit& hit, const RunKey& run, bool difference) {
        Session& session = context.session;
        if (!session.exists(run)) return;
        const auto& model = session.document(run)->reader()->model();
        const bool query_heads = has_query_heads(session, run);
        Cursor over = session.cursor();
        over.run = run;
        over.layer = hit.column;
        over.first_token = over.last_token = -1;
        over.query_head = query_heads ? hit.row : -1;
        over.kv_head = query_heads ? hit.row / static_cast<int>(model.n_heads / model.n_kv_heads) : hit.row;
        session.set_hover(over);
        const auto n = session.document(run)->reader()->prompt(run.prompt).visible_tokens();
        ImGui::BeginTooltip();
        if (difference) {
            ImGui::TextUnformatted(
                fmt::format("{} − {}", session.look(*session.a).label, session.look(*session.b).label).c_str());
            ImGui::Text("%+.0f entries", static_cast<double>(hit.value));
        } else {
            ImGui::TextUnformatted(session.look(run).label.c_str());
            ImGui::TextUnformatted(
                fmt::format("{} entries, {} of {} tokens", analysis::format_count(static_cast<int64_t>(hit.value)),
                            analysis::format_share(static_cast<double>(hit.value) / static_cast<double>(n)),
                            analysis::format_count(n))
                    .c_str());
        }
        ImGui::TextDisabled("layer %d, %s %d", hit.column, query_heads ? "query head" : "KV head", hit.row);
        ImGui::TextDisabled("%s", measure_definition("head_budget"));
        ImGui::EndTooltip();
        if (!hit.clicked) return;
        Cursor next = session.cursor_at(run);
        next.layer = over.layer;
        next.kv_head = over.kv_head;
        next.query_head = over.query_head;
        session.selection.set(next);
    }
};

}  // namespace

ViewKind budgets_view() {
    return {"budgets", "Budgets", "How many entries each head of each layer keeps, one map per run on one scale",
            Dock::bottom, []() -> std::unique_ptr<View> { return std::make_unique<BudgetsView>(); }};
}

}  // namespace kvscope::gui
