#include "app/gui/figure/figure_view.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/gui/figure/figure_choices.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"
#include "common/json.h"

namespace kvscope::gui {

void FigureView::draw(Context& context) {
    Session& session = context.session;
    const Document* document = session.focus();
    if (!document || (!document->reader()->has_model() && document->reader()->result_tasks().empty()))
        return draw_nothing(context, words_.empty);
    const bool may_choose = kind_ == Kind::curves
                                ? draw_comparison_choice(words_.kind, context, automatic_, comparison_)
                                : draw_traces_choice(words_.kind, session, traces_);
    if (may_choose && has_choices()) ImGui::SameLine();
    const std::string no_difference = why_no_difference(session, kind_ == Kind::maps_of_runs);
    const auto before = figure(session);
    if (before) draw_choices(context, *before);
    const auto request = figure(session);
    std::shared_ptr<const PreparedFigure> shown;
    if (kind_ != Kind::curves && traces_ == Traces::difference && !no_difference.empty()) {
        draw_nothing(context, no_difference);
    } else if (!request) {
        const Compared pairs = kind_ == Kind::curves ? compared(session) : Compared{};
        draw_nothing(context, pairs.title.empty() ? words_.empty : why_no_pairs(pairs));
    } else {
        const auto answer = request_figure(session, made_, *request);
        const auto made = answer.value ? answer.value->figure : nullptr;
        if (made &&
            made->sides != sides_of_difference(*request))  // the figure shows another pair than the one now chosen
            draw_nothing(context, words_.waiting);
        else if (answer.value && !made && *words_.remedy)
            draw_nothing(context, fmt::format("{}.\n{}", answer.value->nothing, words_.remedy));
        else
            shown = figure_or_draw_reason(context, answer, words_.waiting);
    }
    if (shown) draw_figure(context, *request, shown);
    draw_figure_menu(context, *this, words_.kind, shown ? request : std::nullopt);
}

Compared FigureView::compared(const Session& session) const {
    Compared pairs = find_compared_runs(session, comparison_, automatic_, true);
    if (pairs.kind == Comparison::Kind::traces) {
        std::erase_if(pairs.pairs, [&](const ComparedRuns& pair) { return session.attributes(pair.a).is_full(); });
    }
    return pairs;
}

std::optional<FigureRequest> FigureView::figure(const Session& session) const {
    return request_for(session, analysis::underscores_to_hyphens(words_.kind));
}

std::optional<FigureRequest> FigureView::request_for(const Session& session, const std::string& name) const {
    const bool with_runs = kind_ != Kind::maps_of_prompts;
    const Compared pairs = kind_ == Kind::curves ? compared(session) : Compared{};
    FigureRequest request =
        pairs.kind != Comparison::Kind::none
            ? difference_figure_request(name, pairs)
            : figure_request_for_shown_runs(session, name, with_runs, kind_ == Kind::curves ? Traces::all : traces_);
    if (request.document < 0) return std::nullopt;
    return request;
}

void FigureView::save(nlohmann::json& state) const {
    if (kind_ == Kind::curves)
        write_comparison_to_json(state, comparison_);
    else
        save_traces_choice(state, traces_);
}

void FigureView::load(const nlohmann::json& state) {
    if (kind_ == Kind::curves)
        read_comparison_from_json(state, comparison_);
    else
        load_traces_choice(state, traces_);
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
        const auto found = std::ranges::find(runs, run);
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
