#include <fmt/format.h>
#include <imgui.h>

#include "app/gui/figure_menu.h"
#include "app/gui/figure_plot.h"
#include "app/gui/view.h"

namespace kvscope::gui {
namespace {

/// Coverage by layer and of the whole model, one curve per run.
class CoverageView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        const auto request = figure(session);
        if (!request) {
            draw_nothing(context, "Open a trace or run the demo to see how much of the prompt the runs keep.");
            return;
        }
        const auto answer = ask_figure(session, fmt::format("coverage {}", static_cast<void*>(this)), *request);
        const auto shown = figure_or_reason(context, answer, "counting the tokens that are kept …");
        if (!shown) return;
        const auto runs = runs_by_label(session, *request);
        const auto run_of = [&](size_t panel, size_t layer) {
            const auto& drawn = shown->figure.panels[panel].layers[layer];
            const auto* line = std::get_if<analysis::Line>(&drawn);
            const auto* point = std::get_if<analysis::Scatter>(&drawn);
            const auto found = runs.find(line ? line->label : point ? point->label : "");
            return found == runs.end() ? RunKey{} : found->second;
        };
        FigureLook look;
        const RunKey hovered = session.hover().run;
        look.weight = [&](size_t panel, size_t layer) {
            const RunKey run = run_of(panel, layer);
            if (hovered.valid() && run.valid()) return run == hovered ? 2.0f : 0.35f;
            return run.valid() && run == session.cursor().run ? 1.8f : 1.0f;
        };
        look.overlay = [&](size_t panel, const PlotFrame& frame, ImDrawList* list) {
            if (panel != 0) return;
            if (session.cursor().layer >= 0)
                draw_column_mark(frame, list, session.cursor().layer, packed(context.theme.accent, 0.7f));
            if (session.hover().layer >= 0)
                draw_column_mark(frame, list, session.hover().layer, packed(context.theme.hover, 0.3f));
        };
        const FigureHit hit = plot_.draw(context, "coverage plot", {0, 0}, shown, look);
        if (hit.panel >= 0) take_mouse(context, *request, *shown, hit, run_of);
        draw_figure_menu(context, *this, "coverage", request);
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        FigureRequest request = shown_request(session, "coverage", true);
        if (request.document < 0) return std::nullopt;
        return request;
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "a run's coverage; the run lights up everywhere"},
                {"click", "select the run and the layer"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"double-click, F", "everything"}};
    }

    void fit() override { plot_.fit(); }

 private:
    template <class RunOf>
    void take_mouse(Context& context, const FigureRequest& request, const PreparedFigure& shown, const FigureHit& hit,
                    const RunOf& run_of) const {
        Session& session = context.session;
        const bool by_layer = hit.panel == 0;
        const int layer = by_layer ? static_cast<int>(std::lround(hit.x)) : -1;
        const bool is_layer = layer >= 0 && layer < n_layers_of(session, request);
        Cursor over = session.cursor();
        over.run = {request.document, request.options.prompt, -1};
        over.kv_head = over.query_head = -1;
        over.first_token = over.last_token = -1;
        over.layer = is_layer ? layer : -1;
        if (hit.layer >= 0) over.run = run_of(static_cast<size_t>(hit.panel), static_cast<size_t>(hit.layer));
        session.set_hover(over);
        if (over.run.valid()) draw_tooltip(context, shown, hit, over);
        if (!hit.clicked) return;
        Cursor next = session.cursor();
        if (over.run.valid()) next.run = over.run;
        if (is_layer) next.layer = layer;
        session.selection.set(next);
    }

    static void draw_tooltip(Context& context, const PreparedFigure& shown, const FigureHit& hit, const Cursor& over) {
        const auto& layer = shown.figure.panels[static_cast<size_t>(hit.panel)].layers[static_cast<size_t>(hit.layer)];
        const auto at = static_cast<size_t>(std::max(hit.point, 0));
        double value = NAN;
        if (const auto* line = std::get_if<analysis::Line>(&layer)) value = line->y[at];
        if (const auto* point = std::get_if<analysis::Scatter>(&layer)) value = point->y[at];
        ImGui::BeginTooltip();
        ImGui::TextUnformatted(context.session.look(over.run).label.c_str());
        ImGui::Text("%.1f %% of the tokens", value);
        ImGui::TextDisabled("%s",
                            hit.panel == 0
                                ? fmt::format("layer {}: kept by at least one of its heads", std::lround(hit.x)).c_str()
                                : "kept by at least one head of any layer");
        ImGui::TextDisabled("coverage, K-VEC, Tables 6 and 7");
        ImGui::EndTooltip();
    }

    FigurePlot plot_;
};

}  // namespace

ViewKind coverage_view() {
    return {"coverage", "Coverage",
            "Share of the prompt that at least one head keeps, by layer and for the whole model", Dock::bottom,
            []() -> std::unique_ptr<View> { return std::make_unique<CoverageView>(); }};
}

}  // namespace kvscope::gui
