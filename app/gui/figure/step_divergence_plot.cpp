#include "app/gui/figure/step_divergence_plot.h"

#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/drawing/ticks.h"
#include "app/gui/drawing/pan_limits.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/figure/figure_legend.h"
#include "app/gui/figure/figure_shapes.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/tooltip_beside.h"
#include "app/gui/view/trace_badge.h"
#include "app/gui/view_data/measure_definitions.h"

namespace kvscope::gui {
namespace {

constexpr float thinnest_bar = 2;    // pixels
constexpr float lowest_row = 4;      // pixels per run in the map
constexpr double bars_share = 0.86;  // share of a step's width

int format_step(double value, char* text, int size, void*) {
    const double whole = std::round(value);
    const bool is_step = std::abs(value - whole) < 1e-6 && whole >= 0;
    if (!is_step) return std::snprintf(text, static_cast<size_t>(size), "%s", "");
    return std::snprintf(text, static_cast<size_t>(size), "%.0f", whole);
}

void draw_step_band(int step, size_t n_steps, ImU32 color) {
    if (step < 0 || static_cast<size_t>(step) >= n_steps) return;
    const float left = ImPlot::PlotToPixels(step - 0.5, 0.0).x;
    const float right = ImPlot::PlotToPixels(step + 0.5, 0.0).x;
    const ImVec2 from = ImPlot::GetPlotPos();
    ImPlot::GetPlotDrawList()->AddRectFilled({left, from.y}, {right, from.y + ImPlot::GetPlotSize().y}, color);
}

void set_ticks(double min, double max, float height) {
    analysis::Axis axis;
    axis.min = min;
    axis.max = max;
    const float em = ImGui::GetFontSize();
    const auto n = static_cast<size_t>(std::max((height - 4 * em) / (1.8f * em), 2.0f));
    std::vector<double> values;
    std::vector<std::string> labels;
    for (auto& [value, label, whole] : analysis::ticks_for(axis, n).ticks) {
        values.push_back(value);
        labels.push_back(std::move(label));
    }
    std::vector<const char*> texts;
    for (const std::string& label : labels) texts.push_back(label.c_str());
    ImPlot::SetupAxisTicks(ImAxis_Y1, values.data(), static_cast<int>(values.size()), texts.data());
}

std::string title_of_values(const std::string& less, bool is_short) {
    if (less.empty()) return is_short ? "KL, nats" : "KL to full, nats";
    return is_short ? "Δ KL, nats" : fmt::format("KL to full − {}, nats", less);
}

}  // namespace

bool wants_step_map(size_t n_runs, double n_steps, float width, float height) {
    if (height < lowest_row * static_cast<float>(n_runs)) return false;
    return n_runs > 1 && bars_share * width / (n_steps * static_cast<double>(n_runs)) < thinnest_bar;
}

struct StepPlot::Frame {
    Context& context;
    std::span<const StepSeries> series;
    const std::string& less;
    float height = 0;
    size_t n_steps = 0;
    double least = 0;  ///< minimum of all values and zero
    double most = 0;
    bool is_difference() const { return !less.empty(); }
    double farthest() const { return std::max({most, -least, 1e-6}); }
};

void StepPlot::draw(Context& context, std::span<const StepSeries> series, float height, const std::string& less) {
    Frame frame{context, series, less, height};
    for (const StepSeries& one : series) {
        frame.n_steps = std::max(frame.n_steps, one.values.size());
        for (const float value : one.values) {
            if (!std::isfinite(value)) continue;
            frame.least = std::min(frame.least, static_cast<double>(value));
            frame.most = std::max(frame.most, static_cast<double>(value));
        }
    }
    if (frame.n_steps == 0) return;
    const auto all = static_cast<double>(frame.n_steps);
    if (first_step_ >= last_step_ || last_step_ > all) {
        first_step_ = 0;
        last_step_ = all;
    }
    const float room = ImGui::GetContentRegionAvail().x - 5 * ImGui::GetFontSize();
    const float rows = height - 6 * ImGui::GetFontSize();  // without the axis and the color bar
    is_map_ = wants_step_map(series.size(), last_step_ - first_step_, room, rows);
    is_map_ ? draw_map(frame) : draw_bars(frame);
    maps_.drop_unused();
}

void StepPlot::draw_bars(const Frame& frame) {
    constexpr ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                                  ImPlotFlags_NoMenus | ImPlotFlags_NoFrame | ImPlotFlags_NoInputs;
    const Session& session = frame.context.session;
    const Theme& theme = frame.context.theme;
    if (!ImPlot::BeginPlot("##answers steps", {-1, frame.height}, flags)) return;
    const bool is_low = frame.height < 9 * ImGui::GetFontSize();
    const double span = std::max(frame.most - frame.least, 1e-6);
    ImPlot::SetupAxis(ImAxis_X1, "decode step", ImPlotAxisFlags_NoGridLines);
    ImPlot::SetupAxis(ImAxis_Y1, title_of_values(frame.less, is_low).c_str());
    ImPlot::SetupAxisLimits(ImAxis_X1, first_step_ - 0.5, last_step_ - 0.5, ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, frame.least < 0 ? frame.least - 0.05 * span : 0, frame.most + 0.05 * span,
                            ImPlotCond_Always);
    ImPlot::SetupAxisFormat(ImAxis_X1, format_step);
    if (frame.most > frame.least) set_ticks(frame.least, frame.most, frame.height);
    ImPlot::SetupFinish();
    draw_step_band(session.cursor().step, frame.n_steps, packed(theme.accent, 0.2f));
    draw_step_band(session.hover().step, frame.n_steps, packed(theme.hover, 0.08f));
    const double each = bars_share / static_cast<double>(frame.series.size());
    double left = -bars_share / 2;
    ImPlot::PushPlotClipRect();
    for (const StepSeries& one : frame.series) {
        for (size_t step = 0; step < one.values.size(); ++step) {
            const auto value = static_cast<double>(one.values[step]);
            const double begin = static_cast<double>(step) + left;
            if (!std::isfinite(value) || begin + each < first_step_ - 0.5 || begin > last_step_ - 0.5) continue;
            const ImVec2 top = ImPlot::PlotToPixels(begin, std::max(value, 0.0));
            const ImVec2 bottom = ImPlot::PlotToPixels(begin + each, std::min(value, 0.0));
            draw_run_bar(theme, one.look.style, top, bottom, ImPlot::GetPlotDrawList());
        }
        left += each;
    }
    ImPlot::PopPlotClipRect();
    if (frame.is_difference()) {
        const float zero = ImPlot::PlotToPixels(0.0, 0.0).y;
        const ImVec2 from = ImPlot::GetPlotPos();
        ImPlot::GetPlotDrawList()->AddLine({from.x, zero}, {from.x + ImPlot::GetPlotSize().x, zero},
                                           packed(theme.ink_quiet));
    }
    scrub(frame);
    ImPlot::EndPlot();
}

const HeatMap& StepPlot::map_of(std::span<const StepSeries> series, size_t n_steps) {
    std::vector<std::vector<float>> values;
    for (const StepSeries& one : series) values.push_back(one.values);
    if (!pyramid_ || values != mapped_) {
        std::vector<float> cells;
        for (const StepSeries& one : series) {
            for (size_t step = 0; step < n_steps; ++step)
                cells.push_back(step < one.values.size() ? one.values[step] : std::numeric_limits<float>::quiet_NaN());
        }
        pyramid_ = std::make_shared<const Pyramid>(
            make_pyramid(std::move(cells), series.size(), n_steps, Reduce::largest_magnitude));
        mapped_ = std::move(values);
    }
    return maps_.get("steps", pyramid_);
}

analysis::Figure StepPlot::color_bar_of(const Frame& frame) {
    analysis::Figure bar;
    analysis::ColorScale& scale = bar.color_scales.emplace_back();
    scale.title = frame.less.empty() ? "KL to full" : fmt::format("KL to full − {}", frame.less);
    scale.unit = "nats";
    if (frame.is_difference()) scale.map = analysis::ColorMap::blue_white_red;
    scale.min = frame.is_difference() ? -frame.farthest() : 0;
    scale.max = frame.farthest();
    return bar;
}

void StepPlot::draw_map(const Frame& frame) {
    constexpr ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                                  ImPlotFlags_NoMenus | ImPlotFlags_NoFrame | ImPlotFlags_NoInputs;
    const Theme& theme = frame.context.theme;
    const analysis::Figure bar = color_bar_of(frame);
    const float width = ImGui::GetContentRegionAvail().x;
    const float below = legend_height(bar, false, true, width);
    const float plot_height = std::max(frame.height - below, 4 * ImGui::GetFontSize());
    if (!ImPlot::BeginPlot("##answers step map", {-1, plot_height}, flags)) return;
    set_up_map_axes(frame, width, plot_height);
    const ImVec2 from = ImPlot::GetPlotPos();
    const ImVec2 to{from.x + ImPlot::GetPlotSize().x, from.y + ImPlot::GetPlotSize().y};
    ImPlot::PushPlotClipRect();
    map_of(frame.series, frame.n_steps)
        .draw(ImPlot::GetPlotDrawList(), from, to,
              {first_step_, last_step_, 0, static_cast<double>(frame.series.size())},
              make_map_colors(bar.color_scales.front(), theme));
    outline_hovered_and_selected(frame, from, to);
    ImPlot::PopPlotClipRect();
    draw_chips(frame, from, to);
    scrub(frame);
    const float right = from.x - ImPlot::GetStyle().LabelPadding.x;
    ImPlot::EndPlot();
    for (size_t i = 0; i < frame.series.size(); ++i) {
        const std::string label = label_of_row(frame, i, width, plot_height);
        const ImVec2 size = ImGui::CalcTextSize(label.c_str());
        const float middle = (row_top(frame, i, from, to) + row_top(frame, i + 1, from, to)) / 2;
        ImGui::PushID(static_cast<int>(i));
        draw_badges_over_text(frame.context, label, {std::round(right - size.x), std::round(middle - size.y / 2)});
        ImGui::PopID();
    }
    draw_legend(frame.context, bar, false, true, width);
}

/// Returns a row's label with space for the run's marker. If rows are too low for text, returns only the space.
std::string StepPlot::label_of_row(const Frame& frame, size_t row, float width, float plot_height) {
    const float em = ImGui::GetFontSize();
    const bool has_labels = (plot_height - 3 * em) / static_cast<float>(frame.series.size()) >= 0.95f * em;
    return (has_labels ? label_that_fits(frame.series[row].look, 0.25f * width) : "") + "    ";
}

void StepPlot::set_up_map_axes(const Frame& frame, float width, float plot_height) const {
    const auto n_runs = static_cast<double>(frame.series.size());
    std::vector<double> ticks;
    std::vector<std::string> labels;
    for (size_t i = 0; i < frame.series.size(); ++i) {
        ticks.push_back(static_cast<double>(i) + 0.5);
        labels.push_back(label_of_row(frame, i, width, plot_height));
    }
    std::vector<const char*> texts;
    for (const std::string& label : labels) texts.push_back(label.c_str());
    ImPlot::SetupAxis(ImAxis_X1, "decode step", ImPlotAxisFlags_NoGridLines);
    ImPlot::SetupAxis(ImAxis_Y1, nullptr,
                      ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks | ImPlotAxisFlags_Invert);
    ImPlot::SetupAxisLimits(ImAxis_X1, first_step_ - 0.5, last_step_ - 0.5, ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, 0, n_runs, ImPlotCond_Always);
    ImPlot::SetupAxisTicks(ImAxis_Y1, ticks.data(), static_cast<int>(ticks.size()), texts.data());
    ImPlot::SetupAxisFormat(ImAxis_X1, format_step);
    ImPlot::SetupFinish();
}

float StepPlot::row_top(const Frame& frame, size_t row, ImVec2 from, ImVec2 to) {
    return from.y + (to.y - from.y) * static_cast<float>(row) / static_cast<float>(frame.series.size());
}

void StepPlot::outline_hovered_and_selected(const Frame& frame, ImVec2 from, ImVec2 to) {
    const Session& session = frame.context.session;
    const ImU32 hovered = packed(frame.context.theme.hover, 0.5f);
    const ImU32 selected = packed(frame.context.theme.accent);
    ImDrawList* list = ImPlot::GetPlotDrawList();
    const auto outline_step = [&](int step, ImU32 color) {
        if (step < 0 || static_cast<size_t>(step) >= frame.n_steps) return;
        list->AddRect({ImPlot::PlotToPixels(step - 0.5, 0.0).x, from.y},
                      {ImPlot::PlotToPixels(step + 0.5, 0.0).x, to.y}, color);
    };
    outline_step(session.hover().step, hovered);
    outline_step(session.cursor().step, selected);
    for (size_t i = 0; i < frame.series.size(); ++i) {
        const RunKey& run = frame.series[i].run;
        const ImVec2 top_left{from.x, row_top(frame, i, from, to)};
        const ImVec2 bottom_right{to.x, row_top(frame, i + 1, from, to)};
        if (run == session.hover().run) list->AddRect(top_left, bottom_right, hovered);
        if (run == session.cursor().run) list->AddRect(top_left, bottom_right, selected);
    }
}

void StepPlot::draw_chips(const Frame& frame, ImVec2 from, ImVec2 to) {
    const float em = ImGui::GetFontSize();
    const float chip = 0.55f * em;
    ImDrawList* list = ImPlot::GetPlotDrawList();
    list->PushClipRect({from.x - 2 * em, from.y}, {from.x, to.y});
    for (size_t i = 0; i < frame.series.size(); ++i) {
        const float row = row_top(frame, i, from, to);
        const float next = row_top(frame, i + 1, from, to);
        const float gap = next - row > 4 ? 1.0f : 0.0f;
        const float high = std::min(next - row - gap, chip);
        const float top = (row + next - high) / 2;
        draw_run_marker(frame.context.theme, frame.series[i].look.style, {from.x - chip - 3 + (chip - high) / 2, top},
                        high, list);
    }
    list->PopClipRect();
}

void StepPlot::zoom_steps(double n_steps) {
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return fit();
    const float wheel = ImGui::GetIO().MouseWheel;
    if (wheel == 0) return;
    const double at = ImPlot::GetPlotMousePos().x + 0.5;
    const double span = last_step_ - first_step_;
    const double zoomed = std::clamp(span * std::pow(wheel_zoom, wheel), std::min(4.0, n_steps), n_steps);
    first_step_ = std::clamp(at - (at - first_step_) / span * zoomed, 0.0, n_steps - zoomed);
    last_step_ = first_step_ + zoomed;
}

void StepPlot::scrub(const Frame& frame) {
    Session& session = frame.context.session;
    const ImVec2 from = ImPlot::GetPlotPos();
    const ImVec2 size = ImPlot::GetPlotSize();
    const ImVec2 mouse = ImGui::GetMousePos();
    if (!ImGui::IsWindowHovered() || mouse.x < from.x || mouse.x >= from.x + size.x || mouse.y < from.y ||
        mouse.y >= from.y + size.y)
        return;
    const ImPlotPoint place = ImPlot::GetPlotMousePos();
    const int step = std::clamp(static_cast<int>(std::lround(place.x)), 0, static_cast<int>(frame.n_steps) - 1);
    zoom_steps(static_cast<double>(frame.n_steps));
    const StepSeries* row = nullptr;
    if (is_map_) {
        const double last = static_cast<double>(frame.series.size()) - 1;
        row = &frame.series[static_cast<size_t>(std::clamp(std::floor(place.y), 0.0, last))];
    }
    Cursor over = session.cursor();
    if (row) over.run = row->run;
    over.step = step;
    session.set_hover(over);
    if (row && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        Cursor next = session.selection.cursor_at(row->run);
        next.step = step;
        session.selection.set(next);
    } else if (ImGui::IsMouseDown(ImGuiMouseButton_Left) && session.cursor().step != step) {
        session.selection.select_step(step);
    }
    const auto t = static_cast<size_t>(step);
    begin_tooltip_beside();
    ImGui::Text("step %d: KL(full ‖ run) of the token distributions", step);
    if (frame.is_difference()) ImGui::Text("minus the KL of %s at the same step", frame.less.c_str());
    ImGui::TextDisabled("%s", measure_definition("kl"));
    for (const StepSeries& one : frame.series) {
        if (t >= one.values.size() || (row && row != &one)) continue;
        draw_inline_run_marker(frame.context.theme, one.look.style);
        const bool other_token = t < one.output->agreement.size() && one.output->agreement[t] == 0;
        const std::string value = frame.is_difference() ? fmt::format("{:+.4g} nats: {:.4g} − {:.4g}", one.values[t],
                                                                      one.output->kl[t], one.output->reference_kl[t])
                                                        : fmt::format("{:.4g} nats", one.values[t]);
        ImGui::TextUnformatted(fmt::format("{}  {}{}", one.look.label, value,
                                           other_token ? "; the most likely token differs from the full run's" : "")
                                   .c_str());
    }
    end_tooltip_beside();
}

}  // namespace kvscope::gui
