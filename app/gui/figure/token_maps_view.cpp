#include "app/gui/figure/token_maps_view.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/gui/drawing/run_marks.h"
#include "app/gui/figure/figure_legend.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/figure/figure_shapes.h"
#include "app/gui/view/run_label.h"

namespace kvscope::gui {
namespace {

using analysis::ColorScale;

/// Returns one scale per title, whose range covers all maps with this title.
std::vector<ColorScale> common_scales(const std::vector<RunTokenMap>& maps) {
    std::vector<ColorScale> scales;
    for (const RunTokenMap& map : maps) {
        if (!map.pyramid) continue;
        const auto same =
            std::ranges::find_if(scales, [&](const ColorScale& scale) { return scale.title == map.scale.title; });
        if (same == scales.end()) {
            scales.push_back(map.scale);
            continue;
        }
        same->max = std::max(same->max, map.scale.max);
        if (map.scale.min >= same->min) continue;
        same->min = map.scale.min;
        same->scale = map.scale.scale;
        same->whole_numbers = map.scale.whole_numbers;
    }
    return scales;
}

MapColors colors_of(const RunTokenMap& map, const std::vector<ColorScale>& scales, const Theme& theme) {
    const auto common =
        std::ranges::find_if(scales, [&](const ColorScale& scale) { return scale.title == map.scale.title; });
    return make_map_colors(common == scales.end() ? map.scale : *common, theme);
}

}  // namespace

void TokenMapsView::draw(Context& context) {
    Session& session = context.session;
    if (std::exchange(fit_, false)) session.token_axis.show_everything();
    const std::vector<RunKey> runs = shown_runs(session);
    if (runs.empty()) return draw_nothing(context, why_no_runs(session));
    std::vector<RunTokenMap> maps;
    for (const RunKey& run : runs) maps.push_back(map_of(session, run));
    const float em = ImGui::GetFontSize();
    draw_header(context);
    ImGui::SameLine(0, 2 * em);
    analysis::Figure scales;
    scales.color_scales = common_scales(maps);
    draw_legend(context, scales, false, true, ImGui::GetContentRegionAvail().x);

    const float overview = 1.4f * em;
    const float axis = em + 3 * context.scale;
    const float room = ImGui::GetContentRegionAvail().y - axis - overview - 2 * ImGui::GetStyle().ItemSpacing.y;
    const auto n_at_once = std::clamp<size_t>(static_cast<size_t>(room / (4.2f * em)), 1, runs.size());
    // Rounds to whole pixels, so that no edge of the next map is visible.
    const float each = std::floor(std::max(room / static_cast<float>(n_at_once), 4.2f * em));
    DrawnTokenMap place, entered;
    RunKey entered_run;
    ImGui::BeginChild("maps", {0, each * static_cast<float>(n_at_once)});
    scroll_to_selected(session.cursor().run, runs, each);
    for (size_t i = 0; i < runs.size(); ++i) {
        const DrawnTokenMap drawn =
            draw_run(context, runs[i], maps[i], colors_of(maps[i], scales.color_scales, context.theme), each);
        if (drawn.is_visible()) place = drawn;
        if (drawn.entered < 0) continue;
        entered = drawn;
        entered_run = runs[i];
    }
    ImGui::EndChild();
    if (place.is_visible()) {
        const RunKey selected = session.cursor().run;
        const bool is_shown = std::ranges::find(runs, selected) != runs.end();
        draw_axis(context, is_shown ? selected : runs.front(), place, overview);
    }
    maps_.drop_unused();
    if (entered.entered >= 0) enter(session, entered_run, entered.entered, entered.entered_token);
    draw_figure_menu(context, *this, figure_name_.c_str(), figure(session));
}

std::optional<FigureRequest> TokenMapsView::figure(const Session& session) const {
    FigureRequest request = figure_request_for_runs(figure_name_, shown_runs(session));
    if (request.document < 0) return std::nullopt;
    if (layer_ >= 0) request.options.layers = {layer_};
    return request;
}

RunTokenMap TokenMapsView::layers_of(Session& session, const RunKey& run) const {
    static const TaskSlot<RunTokenMap> slot;
    const FigureRequest request = figure_request_for_runs(figure_name_, {run});
    const auto answer =
        session.tasks.ask(slot, figure_name_ + run.text(), figure_change_stamp(session, request),
                          [job = FigureJob(session, request)](const std::stop_token& stop) {
                              analysis::Figure figure = job.with_stop(stop).figure();
                              analysis::Panel& panel = figure.panels.front();
                              auto& map = std::get<analysis::HeatMap>(panel.shapes.front());
                              return RunTokenMap{std::make_shared<const Pyramid>(make_pyramid(
                                                     std::move(map.values), map.rows, map.columns, Reduce::maximum)),
                                                 figure.color_scales.at(map.color_scale), panel.note, ""};
                          });
    RunTokenMap map = answer.value ? *answer.value : RunTokenMap{};
    map.error = answer.error;
    return map;
}

const HeatMap& TokenMapsView::drawn_map(const RunKey& run, const RunTokenMap& of, int layer) {
    return maps_.get(fmt::format("{} {}", run.text(), layer), of.pyramid);
}

DrawnTokenMap TokenMapsView::draw_run(Context& context, const RunKey& run, const RunTokenMap& of,
                                      const MapColors& colors, float height) {
    DrawnTokenMap drawn;
    const Session& session = context.session;
    ImGui::PushID(run.text().c_str());
    draw_inline_run_marker(context.theme, session.look(run).style);
    const float beside = ImGui::CalcTextSize(of.note.c_str()).x + ImGui::GetStyle().ItemSpacing.x;
    draw_run_title(context, run, ImGui::GetContentRegionAvail().x - beside);
    ImGui::SameLine();
    ImGui::TextDisabled("%s", of.note.c_str());
    const float map_height = height - ImGui::GetTextLineHeightWithSpacing() - ImGui::GetStyle().ItemSpacing.y;
    if (of.pyramid) {
        TokenMap shown;
        shown.document = session.document(run);
        shown.run = run;
        shown.map = &drawn_map(run, of, layer_);
        shown.colors = colors;
        shown.rows_are_heads = layer_ >= 0;
        shown.layer = layer_;
        shown.tooltip = [&](int row, int64_t token) { draw_tooltip(context, run, row, token); };
        drawn = draw_token_map(context, "##map", {0, map_height}, shown);
    } else {
        ImGui::BeginChild("waiting", {0, map_height});
        if (of.error.empty())
            draw_nothing(context, "reading kept tokens …");
        else
            draw_error(context, of.error);
        ImGui::EndChild();
    }
    ImGui::PopID();
    return drawn;
}

void TokenMapsView::draw_axis(Context& context, const RunKey& run, const DrawnTokenMap& place, float overview) {
    const Document& document = *context.session.document(run);
    draw_token_axis(context, place, document.reader()->prompt(run.prompt).visible_tokens());
    const RunTokenMap layers = layers_of(context.session, run);
    if (!layers.pyramid) return;
    draw_token_overview(context, "overview", place, overview, document, drawn_map(run, layers, -1),
                        make_map_colors(layers.scale, context.theme));
}

/// Scrolls to the map of a run that was selected in another view. The view shows only whole maps.
void TokenMapsView::scroll_to_selected(const RunKey& selected, const std::vector<RunKey>& runs, float each) {
    if (selected == seen_ || ImGui::IsWindowAppearing()) return;  // its scroll range is not known in its first frame
    seen_ = selected;
    const auto at = std::ranges::find(runs, selected);
    if (at == runs.end()) return;
    const float top = static_cast<float>(at - runs.begin()) * each;
    const float room = ImGui::GetWindowHeight();
    if (top + each / 2 < ImGui::GetScrollY())
        ImGui::SetScrollY(top);
    else if (top + each / 2 > ImGui::GetScrollY() + room)
        ImGui::SetScrollY(top + each - room);
}

}  // namespace kvscope::gui
