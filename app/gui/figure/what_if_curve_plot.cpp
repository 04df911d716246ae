#include "app/gui/figure/what_if_curve_plot.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"
#include "app/gui/drawing/theme.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

using analysis::CurveMeasure;
using analysis::DrawnCurve;

std::string title_of(CurveMeasure measure) { return analysis::axis_title_and_unit(measure).first; }

const char* definition_of(CurveMeasure measure) {
    switch (measure) {
        case CurveMeasure::coverage:
            return measure_definition("coverage");
        case CurveMeasure::attention:
            return measure_definition("attention_kept");
        case CurveMeasure::recall:
            return measure_definition("recall");
        case CurveMeasure::bytes:
            return "bytes of the kept keys and values, relative to the full cache";
    }
    return "";
}

std::string text_at(double x, const std::string& over, int64_t n_tokens) {
    if (over != analysis::over_budget) return fmt::format("{} = {}", over, analysis::format_number(x, 4));
    return fmt::format("budget {} ({:.1f} %)", analysis::format_count(std::llround(x)),
                       100 * x / static_cast<double>(std::max<int64_t>(n_tokens, 1)));
}

const DrawnCurve* curve_of(const LiveCurvesNow& now, const RunKey& run) {
    const auto is_its = [&](const analysis::Subject& subject) {
        return now.runs[static_cast<size_t>(subject.run)] == run;
    };
    for (const DrawnCurve& curve : now.curves)
        if (is_its(curve.subject) ||
            std::ranges::any_of(curve.recorded, [&](const auto& each) { return is_its(each.second); }))
            return &curve;
    return nullptr;
}

const DrawnCurve* curve_under(const LiveCurvesNow& now, const FigureHit& hit) {
    if (hit.subject.run < 0) return nullptr;
    return curve_of(now, now.runs[static_cast<size_t>(hit.subject.run)]);
}

/// Sets the parameter to the valid number nearest to `x`, after limiting `x` to the parameter's range.
void move_parameter(policies::ParameterValues& values, const policies::Parameter& parameter, double x) {
    const double within = std::clamp(x, parameter.range.low, parameter.range.high);
    if (parameter.kind == policies::ParameterKind::real) {
        if (parameter.range.contains(within)) values.set_number(parameter.name, within);
        return;
    }
    const double nearest = std::round(within);
    for (const double value : {nearest, nearest + 1, nearest - 1})  // for parameters that must be odd
        if (parameter.range.contains(value)) return values.set_number(parameter.name, value);
}

const policies::Parameter* parameter_of(const LiveWhatIf& what_if, const std::string& over) {
    for (const policies::Parameter& parameter : what_if.definition().parameters)
        if (parameter.name == over) return &parameter;
    return nullptr;
}

/// Returns the slider's position, or nullopt for a parameter that is `auto`.
std::optional<double> slider_at(LiveWhatIf& what_if, const std::string& over) {
    if (over == analysis::over_budget) return static_cast<double>(what_if.budget());
    return policies::numeric_value(what_if.values().value(over));
}

std::string obstacle_of(const LiveWhatIf& what_if, const std::string& over) {
    const policies::Parameter* parameter = parameter_of(what_if, over);
    return parameter ? what_if.obstacle(*parameter) : what_if.budget_obstacle();
}

double measured_now(const LiveWhatIf& what_if, CurveMeasure measure) {
    const auto summary = what_if.summary_now();
    if (!summary) return NAN;
    return analysis::measured_value({0, *summary, NAN}, measure);
}

// The limits for opening and closing differ, because an open plot can wrap lines above it and lose height.
constexpr float least_ems = 6, comfortable_ems = 8, most_ems = 13;

float room_for_plot() { return ImGui::GetContentRegionAvail().y - 2 * ImGui::GetFrameHeightWithSpacing(); }

}  // namespace

void CurvePlot::draw(Context& context, LiveWhatIf& what_if) {
    if (move_ && move_->run == what_if.source()) go_to(context, what_if, *move_);
    move_.reset();
    had_room_ = room_for_plot() >= (had_room_ ? least_ems : comfortable_ems) * ImGui::GetFontSize();
    const bool was_open = is_open_.value_or(had_room_);
    ImGui::SetNextItemOpen(was_open);
    const bool is_open = ImGui::CollapsingHeader("Curves");
    if (is_open != was_open) is_open_ = is_open;
    ImGui::SetItemTooltip(
        "Plots how the shown runs depend on the budget or a parameter, by repeating their selections.");
    if (!is_open) return;
    const std::string over =
        analysis::can_be_curve_axis(what_if.definition(), settings_.over) ? settings_.over : analysis::over_budget;
    choose_measure();
    ImGui::SameLine();
    choose_over(what_if, over);
    CurveSettings settings = settings_;
    settings.over = over;
    const LiveCurvesNow now = curves_.update(context.session, context.engine, what_if.source(), settings);
    const auto reader = context.session.document(what_if.source())->reader();
    if (now.stamp != figure_stamp_) prepare(now, what_if, *reader, over);
    draw_plot(context, now, what_if, over);
    if (over == analysis::over_budget && settings_.measure != CurveMeasure::bytes)
        draw_crossings(context, now, what_if);
    draw_left_out(context, now);
}

void CurvePlot::choose_measure() {
    ImGui::SetNextItemWidth(std::min(0.42f * ImGui::GetContentRegionAvail().x, 9 * ImGui::GetFontSize()));
    if (ImGui::BeginCombo("##curve measure", title_of(settings_.measure).c_str())) {
        for (const CurveMeasure measure : analysis::curve_measures) {
            if (ImGui::Selectable(title_of(measure).c_str(), measure == settings_.measure)) settings_.measure = measure;
            item_tooltip(definition_of(measure));
        }
        ImGui::EndCombo();
    }
    item_tooltip(definition_of(settings_.measure));
}

void CurvePlot::choose_over(const LiveWhatIf& what_if, const std::string& shown) {
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted("over");
    ImGui::SameLine();
    ImGui::SetNextItemWidth(std::min(ImGui::GetContentRegionAvail().x, 9 * ImGui::GetFontSize()));
    if (!ImGui::BeginCombo("##curve over", shown.c_str())) return;
    const auto choice = [&](const std::string& name) {
        const std::string obstacle = obstacle_of(what_if, name);
        ImGui::BeginDisabled(!obstacle.empty());
        if (ImGui::Selectable(name.c_str(), name == shown)) settings_.over = name;
        ImGui::EndDisabled();
        if (!obstacle.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
            ImGui::SetTooltip("%s", obstacle.c_str());
    };
    choice(analysis::over_budget);
    for (const policies::Parameter& parameter : what_if.definition().parameters)
        if (analysis::can_be_curve_axis(what_if.definition(), parameter.name)) choice(parameter.name);
    ImGui::EndCombo();
}

void CurvePlot::prepare(const LiveCurvesNow& now, const LiveWhatIf& what_if, const trace::Reader& reader,
                        const std::string& over) {
    figure_stamp_ = now.stamp;
    full_bytes_ = analysis::bytes_of_all_entries(reader, what_if.source().prompt);
    is_known_ = std::ranges::any_of(now.curves, [&](const DrawnCurve& curve) {
        return std::ranges::any_of(curve.points, [&](const analysis::CurvePoint& point) {
            return std::isfinite(analysis::measured_value(point, settings_.measure));
        });
    });
    figure_.reset();
    if (!is_known_) return;
    auto prepared =
        prepare_figure(analysis::curve_figure(now.curves, {settings_.measure, over, settings_.threshold, full_bytes_}));
    prepared.runs = {now.runs};
    prepared.traces = {{what_if.source().document, what_if.source().prompt}};
    figure_ = std::make_shared<const PreparedFigure>(std::move(prepared));
}

void CurvePlot::draw_plot(Context& context, const LiveCurvesNow& now, LiveWhatIf& what_if, const std::string& over) {
    const float em = ImGui::GetFontSize();
    const float height = std::clamp(ImGui::GetContentRegionAvail().y, least_ems * em, most_ems * em);
    if (!figure_) {
        const char* why = now.n_under_way > 0  ? "Repeating the selection at each budget …"
                          : now.curves.empty() ? "The selections of the shown runs cannot be repeated."
                          : settings_.measure == CurveMeasure::recall
                              ? "The trace does not contain the attention of the full run's answer."
                              : "The trace does not contain the window attention.";
        ImGui::BeginChild("no curves", {0, height});
        draw_nothing(context, why);
        ImGui::EndChild();
        return;
    }
    const Session& session = context.session;
    const DrawnCurve* own = curve_of(now, what_if.source());
    const std::optional<double> at = slider_at(what_if, over);
    FigureLook look;
    look.legend = false;
    look.selects = false;
    look.least_height = 2 * em;  // so that the plot's minimum height fits its axis
    look.weight = [&](size_t panel, size_t shape) {
        const RunKey run = figure_->run_of(panel, shape);
        if (!run.valid()) return 1.0f;
        const RunKey hovered = session.hover().run;
        const DrawnCurve* accented = hovered.valid() ? curve_of(now, hovered) : own;
        if (!accented) return 1.0f;
        return curve_of(now, run) == accented ? 1.8f : hovered.valid() ? 0.35f : 1.0f;
    };
    look.overlay = [&](size_t, const PlotFrame& frame, ImDrawList* list) {
        if (!at) return;
        draw_column_mark(frame, list, *at, packed(context.theme.accent));
        const double y =
            analysis::to_axis_percent(measured_now(what_if, settings_.measure), settings_.measure, full_bytes_);
        if (!own || !std::isfinite(y)) return;
        const ImVec2 place{frame.x_of(*at), frame.y_of(y)};
        list->AddCircleFilled(place, 4 * context.scale, packed(context.theme.panel));
        list->AddCircle(place, 4 * context.scale, packed(context.theme.accent), 0, 2 * context.scale);
    };
    const FigureHit hit = plot_.draw(context, "curves", {0, height}, figure_, look);
    if (hit.panel < 0) return;
    const DrawnCurve* under = curve_under(now, hit);
    const RunKey run = under ? now.runs[static_cast<size_t>(hit.subject.run)] : what_if.source();
    if (under) {
        Cursor over_run = session.hover();
        over_run.run = run;
        context.session.set_hover(over_run);
    }
    draw_tooltip(context, now, hit, what_if, over);
    if (hit.clicked) go_to(context, what_if, {under == own ? what_if.source() : run, hit.x});
}

void CurvePlot::draw_tooltip(const Context& context, const LiveCurvesNow& now, const FigureHit& hit,
                             const LiveWhatIf& what_if, const std::string& over) const {
    const DrawnCurve* under = curve_under(now, hit);
    begin_tooltip_beside();
    if (under) {
        const auto nearest = std::ranges::min_element(
            under->points, [&](const auto& a, const auto& b) { return std::abs(a.x - hit.x) < std::abs(b.x - hit.x); });
        const double value = analysis::to_axis_percent(analysis::measured_value(*nearest, settings_.measure),
                                                       settings_.measure, full_bytes_);
        ImGui::TextUnformatted(under->label.c_str());
        ImGui::Text("%s: %.1f %%", title_of(settings_.measure).c_str(), value);
        ImGui::TextUnformatted(text_at(nearest->x, over, what_if.n_tokens()).c_str());
    } else {
        ImGui::TextUnformatted(text_at(hit.x, over, what_if.n_tokens()).c_str());
    }
    const std::string obstacle = under && under != curve_of(now, what_if.source()) ? "" : obstacle_of(what_if, over);
    ImGui::PushStyleColor(ImGuiCol_Text, context.theme.ink_quiet);
    ImGui::TextUnformatted(obstacle.empty() ? "Click to move the slider here." : obstacle.c_str());
    ImGui::PopStyleColor();
    end_tooltip_beside();
}

void CurvePlot::draw_crossings(Context& context, const LiveCurvesNow& now, LiveWhatIf& what_if) {
    double per_cent = 100 * settings_.threshold;
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted("reaches");
    ImGui::SameLine();
    ImGui::SetNextItemWidth(4.5f * ImGui::GetFontSize());
    if (ImGui::InputDouble("##threshold", &per_cent, 0, 0, "%g %%", ImGuiInputTextFlags_EnterReturnsTrue) ||
        ImGui::IsItemDeactivatedAfterEdit())
        settings_.threshold = std::clamp(per_cent, 0.1, 100.0) / 100;
    ImGui::SetItemTooltip("Lists for each run the smallest budget at which the measure reaches this percentage.");
    ImGui::SameLine();
    ImGui::TextUnformatted("at");
    constexpr ImGuiTableFlags flags = ImGuiTableFlags_SizingStretchProp;
    if (!ImGui::BeginTable("crossings", 2, flags)) return;
    ImGui::TableSetupColumn("run", ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn("budget", ImGuiTableColumnFlags_WidthFixed);
    for (const DrawnCurve& curve : now.curves) {
        const RunKey run = now.runs[static_cast<size_t>(curve.subject.run)];
        ImGui::TableNextColumn();
        const ImVec2 from = ImGui::GetCursorScreenPos();
        const float em = ImGui::GetFontSize();
        ImGui::GetWindowDrawList()->AddRectFilled({from.x, from.y + 0.45f * em}, {from.x + em, from.y + 0.65f * em},
                                                  packed(adapt_line_color_to_theme(curve.style.color, context.theme)));
        ImGui::Dummy({em, em});
        ImGui::SameLine();
        ImGui::PushID(run.text().c_str());
        const bool is_own = &curve == curve_of(now, what_if.source());
        if (ImGui::Selectable(curve.label.c_str(), is_own, ImGuiSelectableFlags_SpanAllColumns)) {
            const RunKey wanted = is_own ? what_if.source() : run;
            if (curve.reaches)
                go_to(context, what_if, {wanted, static_cast<double>(*curve.reaches)});
            else
                context.session.selection.select_run(wanted);
        }
        item_tooltip(curve.reaches ? "Click to move the slider there." : "Click to select the run.");
        if (ImGui::IsItemHovered()) {
            Cursor hover = context.session.hover();
            hover.run = run;
            context.session.set_hover(hover);
        }
        ImGui::PopID();
        ImGui::TableNextColumn();
        if (curve.reaches)
            plain_text(
                fmt::format("{} ({:.1f} %)", analysis::format_count(*curve.reaches),
                            100 * static_cast<double>(*curve.reaches) / static_cast<double>(what_if.n_tokens())));
        else
            ImGui::TextDisabled("%s", now.n_under_way > 0 ? "…" : "not reached");
    }
    ImGui::EndTable();
}

void CurvePlot::draw_left_out(const Context&, const LiveCurvesNow& now) const {
    if (now.left_out.empty()) return;
    disabled_text(now.left_out.size() == 1 ? "1 run has no curve"
                                           : fmt::format("{} runs have no curve", now.left_out.size()).c_str());
    if (!ImGui::IsItemHovered()) return;
    std::string why;
    for (const std::string& each : now.left_out) why += (why.empty() ? "" : "\n") + each;
    ImGui::SetTooltip("%s", why.c_str());
}

void CurvePlot::go_to(Context& context, LiveWhatIf& what_if, const Move& move) {
    if (move.run != what_if.source()) {  // select the run first; the next frame moves the slider
        move_ = move;
        context.session.selection.select_run(move.run);
        return;
    }
    const policies::Parameter* parameter = parameter_of(what_if, settings_.over);
    if (!obstacle_of(what_if, parameter ? settings_.over : analysis::over_budget).empty() && !what_if.is_reading())
        return;
    if (parameter)
        move_parameter(what_if.values(), *parameter, move.x);
    else
        what_if.budget() = std::clamp(static_cast<int64_t>(std::llround(move.x)), what_if.smallest_budget_to_try(),
                                      std::max<int64_t>(what_if.n_tokens(), 1));
}

void CurvePlot::save(nlohmann::json& state) const {
    if (is_open_) state["curves"] = *is_open_;
    state["curve measure"] = analysis::curve_measure_name(settings_.measure);
    state["curve over"] = settings_.over;
    state["curve threshold"] = settings_.threshold;
}

void CurvePlot::load(const nlohmann::json& state) {
    is_open_.reset();
    if (const auto found = state.find("curves"); found != state.end() && found->is_boolean())
        is_open_ = found->get<bool>();
    try {
        settings_.measure = analysis::curve_measure_from_name(state.value("curve measure", std::string()));
    } catch (const std::exception&) {
        settings_.measure = CurveMeasure::coverage;  // for a measure of a later version
    }
    settings_.over = state.value("curve over", settings_.over);
    const double threshold = state.value("curve threshold", settings_.threshold);
    if (threshold > 0 && threshold <= 1) settings_.threshold = threshold;
}

}  // namespace kvscope::gui
