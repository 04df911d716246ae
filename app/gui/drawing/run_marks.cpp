#include "app/gui/drawing/run_marks.h"

#include <vector>

#include "analysis/drawing/line_and_marker_shapes.h"

namespace kvscope::gui {
namespace {

using analysis::Marker;

constexpr float pixels_a_point = 1.6f;

std::vector<ImVec2> corners_of(Marker marker, ImVec2 at, float r) {
    std::vector<ImVec2> corners;
    for (const auto& [across, down] : analysis::marker_corners(marker))
        corners.emplace_back(at.x + r * static_cast<float>(across), at.y + r * static_cast<float>(down));
    return corners;
}

void draw_hollow_marker(Marker marker, ImVec2 at, float size, ImU32 color, ImDrawList* list) {
    const float r = size / 2 - 0.5f;
    if (marker == Marker::circle) return list->AddCircle(at, r, color);
    const std::vector<ImVec2> corners = corners_of(marker, at, r);
    if (marker == Marker::cross) {  // a cross has no inside, so draw thin lines
        for (size_t i = 0; i < corners.size(); i += 2) list->AddLine(corners[i], corners[i + 1], color);
        return;
    }
    list->AddPolyline(corners.data(), static_cast<int>(corners.size()), color, 1.0f, ImDrawFlags_Closed);
}

}  // namespace

float pixels_per_point() { return pixels_a_point * ImGui::GetStyle().FontScaleMain; }

bool wants_rim(const Theme& theme, analysis::Rgb color) {
    return theme.brightness == Brightness::light && analysis::wants_rim(color);
}

ImU32 rim_of(analysis::Rgb color, float alpha) {
    const analysis::Rgb rim = analysis::rim_of(color);
    const auto part = [](uint8_t channel) { return static_cast<float>(channel) / 255; };
    return packed(ImVec4{part(rim.r), part(rim.g), part(rim.b), 1}, alpha);
}

void draw_marker(const Theme& theme, Marker marker, ImVec2 at, float size, const analysis::MarkColor& color,
                 float alpha, ImDrawList* list) {
    const float r = size / 2;
    const ImU32 fill = packed(adapt_line_color_to_theme(color, theme), alpha);
    const bool rim = wants_rim(theme, color);
    if (marker == Marker::none) return;
    if (marker == Marker::circle) {
        list->AddCircleFilled(at, r, fill);
        if (rim) list->AddCircle(at, r, rim_of(color, alpha));
        return;
    }
    const std::vector<ImVec2> corners = corners_of(marker, at, r);
    if (marker == Marker::cross) {
        const float width =
            static_cast<float>(analysis::cross_stroke_width(static_cast<double>(size / pixels_per_point()))) *
            pixels_per_point();
        for (size_t i = 0; i < corners.size(); i += 2) list->AddLine(corners[i], corners[i + 1], fill, width);
        return;
    }
    list->AddConvexPolyFilled(corners.data(), static_cast<int>(corners.size()), fill);
    if (rim)
        list->AddPolyline(corners.data(), static_cast<int>(corners.size()), rim_of(color, alpha), 1.0f,
                          ImDrawFlags_Closed);
}

void draw_run_marker(const Theme& theme, const analysis::LineStyle& style, ImVec2 from, float side, ImDrawList* list,
                     bool is_filled) {
    const Marker marker = style.marker == Marker::none ? Marker::circle : style.marker;
    const ImVec2 at{from.x + side / 2, from.y + side / 2};
    if (is_filled)
        draw_marker(theme, marker, at, side, style.color, 1, list);
    else
        draw_hollow_marker(marker, at, side, packed(adapt_line_color_to_theme(style.color, theme)), list);
}

void draw_inline_run_marker(const Theme& theme, const analysis::LineStyle& style, float height) {
    const float side = 0.7f * ImGui::GetFontSize();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float line = height > 0 ? height : ImGui::GetTextLineHeight();
    draw_run_marker(theme, style, {at.x, at.y + (line - side) / 2}, side, ImGui::GetWindowDrawList());
    ImGui::Dummy({side, height});
    ImGui::SameLine();
}

}  // namespace kvscope::gui
