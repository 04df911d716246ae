#include "app/gui/figure/head_maps_view.h"

#include <imgui.h>

#include <algorithm>

#include "app/gui/view/tooltip_beside.h"
#include "app/gui/view_data/measure_definitions.h"

namespace kvscope::gui {
namespace {

bool has_query_heads(const Session& session, const RunKey& run) {
    return session.exists(run) && session.attributes(run).granularity == trace::schema::run::granularity_query_head;
}

int row_of(const Session& session, const RunKey& run, const Cursor& cursor) {
    return has_query_heads(session, run) ? cursor.query_head : cursor.kv_head;
}

}  // namespace

std::optional<FigureRequest> HeadMapsView::figure(const Session& session) const {
    FigureRequest request = request_for(session, figure_name_.c_str(), true);
    if (request.document < 0) return std::nullopt;
    return request;
}

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
    if (hit.row >= 0) take_mouse(context, *shown, hit, request.difference);
}

void HeadMapsView::take_mouse(Context& context, const PreparedFigure& shown, const FigureHit& hit,
                              bool is_difference) const {
    Session& session = context.session;
    const auto over = shown.cursor_of(session, hit.subject);
    if (!over || !over->run.valid()) return;
    const RunKey& run = over->run;
    session.set_hover(*over);
    begin_tooltip_beside();
    for (const std::string& line : describe(session, run, hit, is_difference)) ImGui::TextUnformatted(line.c_str());
    ImGui::TextDisabled("layer %d, %s %d", hit.subject.layer, hit.subject.query_heads ? "query head" : "KV head",
                        hit.subject.head);
    ImGui::TextDisabled("%s", measure_definition(measure()));
    end_tooltip_beside();
    if (!hit.clicked) return;
    Cursor next = session.selection.cursor_at(run);
    next.layer = over->layer;
    next.kv_head = over->kv_head;
    next.query_head = over->query_head;
    session.selection.set(next);
}

}  // namespace kvscope::gui
