#include "app/gui/figure/head_maps_view.h"

#include <imgui.h>

#include <algorithm>

#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"

namespace kvscope::gui {

std::vector<std::pair<std::string, std::string>> HeadMapsView::help() const {
    return {{"move the mouse", hint_},
            {"click", "select the run, layer and head"},
            {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
            {"wheel beside a map, Page Up, Page Down", "scroll to other maps"},
            {"double-click, F", "show everything"}};
}

void HeadMapsView::draw_figure(Context& context, const FigureRequest& request,
                               const std::shared_ptr<const PreparedFigure>& shown) {
    const Session& session = context.session;
    std::vector<RunKey> runs;
    for (const auto& panel : shown->figure.panels) runs.push_back(shown->run_of(panel.subject));
    for (RunKey& run : runs)
        if (!session.exists(run)) run = {};
    FigureLook look;
    const float em = ImGui::GetFontSize();
    look.columns = static_cast<size_t>(std::clamp(ImGui::GetContentRegionAvail().x / (26 * em), 1.0f, 4.0f));
    // A run's maps stay side by side, or below each other if only one column fits.
    look.columns = std::max<size_t>(look.columns - look.columns % maps_a_run_, 1);
    const auto place_of = [&](const RunKey& run) {
        const auto found = std::find(runs.begin(), runs.end(), run);
        return found == runs.end() || !run.valid() ? -1 : static_cast<int>(found - runs.begin());
    };
    look.framed = request.difference ? -1 : place_of(session.cursor().run);
    look.hovered = place_of(session.hover().run);
    const FigureHit hit = plot_.draw(context, "budget maps", {0, 0}, shown, look);
    if (hit.row < 0 || !hit.over || !hit.over->run.valid()) return;
    begin_tooltip_beside();
    for (const std::string& line : describe(session, hit.over->run, hit, request.difference))
        ImGui::TextUnformatted(line.c_str());
    ImGui::TextDisabled("layer %d, %s %d", hit.subject.layer, hit.subject.query_heads ? "query head" : "KV head",
                        hit.subject.head);
    ImGui::TextDisabled("%s", measure_definition(measure()));
    end_tooltip_beside();
}

}  // namespace kvscope::gui
