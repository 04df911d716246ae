#include "app/gui/tokens/map_key.h"

#include <imgui.h>

#include <cmath>

namespace kvscope::gui {

void draw_color_patch(const Theme& theme, ImU32 color, const std::string& label) {
    const float side = ImGui::GetFontSize();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddRectFilled(at, {at.x + side, at.y + side}, color);
    list->AddRect(at, {at.x + side, at.y + side}, packed(theme.line));
    ImGui::Dummy({side, side});
    if (label.empty()) {
        ImGui::SameLine(0, 1);
        return;
    }
    ImGui::SameLine(0, 0.25f * side);
    ImGui::TextDisabled("%s", label.c_str());
    ImGui::SameLine();
}

void draw_color_gradient(const MapColors& colors, ImVec2 from, ImVec2 size) {
    for (float x = 0; x < std::floor(size.x); ++x) {
        const float share = x / size.x;
        const float value = colors.logarithmic ? colors.min * std::pow(colors.max / colors.min, share)
                                               : colors.min + (colors.max - colors.min) * share;
        ImGui::GetWindowDrawList()->AddRectFilled({from.x + x, from.y}, {from.x + x + 1, from.y + size.y},
                                                  map_value_to_color(colors, value));
    }
}

MapColors count_colors(const Theme& theme, float least, float most) {
    MapColors colors;
    colors.map = adapt_color_map_to_theme(analysis::ColorMap::viridis_reversed, theme);
    colors.map_begin = theme.brightness == Brightness::dark ? 0.25f : 0.1f;
    colors.map_end = 1;
    colors.min = least;
    colors.max = most;
    colors.ground_below_min = true;
    colors.ground = packed(theme.ground);
    return colors;
}

MapColors difference_colors(const Theme& theme, float most) {
    MapColors colors;
    colors.map = adapt_color_map_to_theme(analysis::ColorMap::blue_white_red, theme);
    colors.min = -most;
    colors.max = most;
    colors.ground = packed(theme.ground);
    return colors;
}

}  // namespace kvscope::gui
