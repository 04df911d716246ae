#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/gui/figure/figure_view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"

namespace kvscope::gui {
namespace {

class CoverageView : public FigureView {
 public:
    CoverageView()
        : FigureView({"coverage", open_trace_or_demo() + " to see how much of the prompt the runs keep.",
                      "counting kept tokens …", ""},
                     Kind::curves) {}

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "coverage of a run, which is highlighted in all views"},
                {"no differences / A − B / two − one", "the curve of each run, or the difference of two runs"},
                {"click", "select the run and the layer"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"double-click, F", "everything"}};
    }

 private:
    void draw_figure(Context& context, const FigureRequest& request,
                     const std::shared_ptr<const PreparedFigure>& shown) override {
        const Session& session = context.session;
        const Compared pairs = request.difference ? compared(session) : Compared{};
        FigureLook look;
        look.weight = weight_of_runs(session, *shown);
        const FigureHit hit = plot_.draw(context, "coverage plot", {0, 0}, shown, look);
        if (hit.over && hit.over->run.valid()) draw_tooltip(context, *shown, hit, *hit.over, pairs);
    }

    static void draw_tooltip(Context& context, const PreparedFigure& shown, const FigureHit& hit, const Cursor& over,
                             const Compared& pairs) {
        const auto& shape = shown.figure.panels[static_cast<size_t>(hit.panel)].shapes[static_cast<size_t>(hit.shape)];
        const auto at = static_cast<size_t>(std::max(hit.point, 0));
        double value = NAN;
        if (const auto* line = std::get_if<analysis::Line>(&shape)) value = line->y[at];
        if (const auto* point = std::get_if<analysis::Scatter>(&shape)) value = point->y[at];
        begin_tooltip_beside();
        if (const ComparedRuns* pair = pairs.of(over.run)) {
            ImGui::Text("%+.1f %% of the tokens", value);
            plain_text(
                fmt::format("{}\nless {}", context.session.look(pair->a).label, context.session.look(pair->b).label));
        } else {
            ImGui::TextUnformatted(context.session.look(over.run).label.c_str());
            ImGui::Text("%.1f %% of the tokens", value);
        }
        const bool of_layer = over.layer >= 0;
        disabled_text(of_layer ? fmt::format("layer {}: kept by at least one of its heads", over.layer).c_str()
                               : "kept by at least one head of any layer");
        ImGui::TextDisabled("%s", measure_definition(of_layer ? "layer_coverage" : "coverage"));
        end_tooltip_beside();
    }
};

}  // namespace

ViewKind coverage_view() {
    return {"coverage",
            "Coverage",
            "Share of the prompt that at least one head keeps, by layer and for the whole model",
            Dock::bottom,
            Topic::tokens,
            make_view<CoverageView>,
            R"(
.............***
........*****...
.....***.....###
...**....####...
..*...###.......
.*..##..........
*.##............
----------------)"};
}

}  // namespace kvscope::gui
