#include "app/gui/figure/figure_axes.h"

#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/gui/view/run_label.h"

namespace kvscope::gui {

using analysis::Axis;

namespace {

size_t ticks_that_fit(float length, float each) {
    return static_cast<size_t>(std::clamp(length / std::max(each, 1.0f), 2.0f, 12.0f));
}

}  // namespace

ImVec2 measure_small_text(const std::string& text) {
    return ImGui::GetFont()->CalcTextSizeA(small_text * ImGui::GetFontSize(), FLT_MAX, 0, text.c_str());
}

void draw_full_text_tooltip(ImVec2 at, const std::string& shown, const std::string& whole) {
    if (whole.empty() || !ImGui::IsWindowHovered()) return;
    const ImVec2 size = measure_small_text(shown);
    if (ImGui::IsMouseHoveringRect(at, {at.x + size.x, at.y + size.y})) ImGui::SetTooltip("%s", whole.c_str());
}

void draw_small_text(ImDrawList* list, ImVec2 at, ImU32 color, const std::string& text) {
    list->AddText(ImGui::GetFont(), small_text * ImGui::GetFontSize(), at, color, text.c_str());
}

analysis::Ticks y_ticks(const Axis& axis, float height) {
    return analysis::ticks_for(axis, ticks_that_fit(height, 1.7f * ImGui::GetFontSize()));
}

analysis::Ticks x_ticks(const Axis& axis, float width) {
    return analysis::ticks_for(axis, ticks_that_fit(width, 3.2f * ImGui::GetFontSize()));
}

float widest_label(const analysis::Ticks& ticks) {
    float width = 0;
    for (const auto& tick : ticks.ticks) width = std::max(width, measure_small_text(tick.label).x);
    return width;
}

float lower_end_of_y_axis_title(float from, float to, float length, float top, float bottom) {
    return std::max(std::min((from + to + length) / 2, bottom), top + length);
}

void draw_ticks(const Context& context, const PlotFrame& frame, bool x_labels, bool y_labels, float y_title_x) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImU32 ink = packed(context.theme.ink_quiet);
    const float line = small_text * ImGui::GetFontSize();
    const float gap = 3;
    if (x_labels) {
        const auto ticks = x_ticks(frame.x_axis, frame.max.x - frame.min.x);
        float free_from = -FLT_MAX;
        for (const auto& tick : ticks.ticks) {
            const float x = frame.x_of(tick.value);
            if (x < frame.min.x - 1 || x > frame.max.x + 1) continue;
            const float width = measure_small_text(tick.label).x;
            if (x - width / 2 < free_from) continue;
            list->AddLine({x, frame.max.y}, {x, frame.max.y + gap}, ink);
            draw_small_text(list, {std::round(x - width / 2), frame.max.y + gap + 1}, ink, tick.label);
            free_from = x + width / 2 + 0.4f * line;
        }
        const std::string title = analysis::axis_title(frame.x_axis.title, frame.x_axis.unit, ticks.exponent);
        const float width = measure_small_text(title).x;
        const float most_right = ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - width;
        const float left = std::min((frame.min.x + frame.max.x - width) / 2, most_right);
        draw_small_text(list, {std::max(left, ImGui::GetWindowPos().x), frame.max.y + line + gap + 2}, ink, title);
    }
    if (y_labels) {
        const auto ticks = y_ticks(frame.y_axis, frame.max.y - frame.min.y);
        std::vector<float> taken;
        for (const auto& tick : ticks.ticks) {
            const float y = frame.y_of(tick.value);
            if (y < frame.min.y - 1 || y > frame.max.y + 1) continue;
            const bool overlaps =
                std::ranges::any_of(taken, [&](float other) { return std::abs(other - y) < 0.95f * line; });
            if (overlaps) continue;
            taken.push_back(y);
            list->AddLine({frame.min.x - gap, y}, {frame.min.x, y}, ink);
            const ImVec2 at{frame.min.x - gap - 2 - measure_small_text(tick.label).x, std::round(y - line / 2)};
            draw_small_text(list, at, ink, tick.label);
            draw_full_text_tooltip(at, tick.label, tick.whole);
            draw_badges_over_text(context, tick.label, at, line);
        }
        const std::string title = analysis::axis_title(frame.y_axis.title, frame.y_axis.unit, ticks.exponent);
        if (title.empty()) return;
        ImGui::PushFont(nullptr, ImGui::GetStyle().FontSizeBase * small_text);
        const float length = ImGui::CalcTextSize(title.c_str()).x;
        const float top = ImGui::GetWindowPos().y;
        const float bottom =
            lower_end_of_y_axis_title(frame.min.y, frame.max.y, length, top, top + ImGui::GetWindowHeight());
        ImPlot::AddTextVertical(list, {y_title_x, std::round(bottom)}, ink, title.c_str());
        ImGui::PopFont();
    }
}

void draw_grid_lines(const Theme& theme, const PlotFrame& frame, ImDrawList* list) {
    const ImU32 color = packed(theme.ink, 0.09f);
    for (const auto& tick : x_ticks(frame.x_axis, frame.max.x - frame.min.x).ticks) {
        const float x = frame.x_of(tick.value);
        list->AddLine({x, frame.min.y}, {x, frame.max.y}, color);
    }
    for (const auto& tick : y_ticks(frame.y_axis, frame.max.y - frame.min.y).ticks) {
        const float y = frame.y_of(tick.value);
        list->AddLine({frame.min.x, y}, {frame.max.x, y}, color);
    }
}

}  // namespace kvscope::gui
