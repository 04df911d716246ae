#include "app/gui/drawing/theme_adapted_colors.h"

#include <algorithm>

namespace kvscope::gui {

namespace {

double luminance(ImVec4 color) { return 0.2126 * color.x + 0.7152 * color.y + 0.0722 * color.z; }

ImVec4 opaque(analysis::Rgb color) {
    return {static_cast<float>(color.r) / 255, static_cast<float>(color.g) / 255, static_cast<float>(color.b) / 255, 1};
}

bool is_pale_hue(analysis::Rgb color) {
    const auto [least, most] = std::minmax({color.r, color.g, color.b});
    return least > 0xc0 && most - least >= 8;
}

}  // namespace

ImVec4 mixed(ImVec4 a, ImVec4 b, float share) {
    return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y), a.z + share * (b.z - a.z), 1};
}

ImVec4 adapt_area_color_to_theme(analysis::Rgb color, const Theme& theme) {
    if (theme.brightness == Brightness::light) return opaque(color);
    if (color == analysis::Rgb{}) return theme.ink;
    const auto [least, most] = std::minmax({color.r, color.g, color.b});
    if (is_pale_hue(color)) {  // a near-white color becomes a color near the background with the same hue
        const auto full = [rest = static_cast<float>(255 - least)](uint8_t channel) {
            return 1 - static_cast<float>(255 - channel) / rest;
        };
        return mixed(theme.ground, {full(color.r), full(color.g), full(color.b), 1}, 0.3f);
    }
    if (least > 0xc0) return theme.line;
    ImVec4 seen = opaque(color);
    for (int i = 0; i < 10 && luminance(seen) < 0.3; ++i) seen = mixed(seen, theme.ink, 0.1f);
    return seen;
}

ImVec4 adapt_line_color_to_theme(const analysis::MarkColor& color, const Theme& theme) {
    if (theme.brightness == Brightness::light) return opaque(color);
    if (color.on_dark) return opaque(*color.on_dark);
    return is_pale_hue(color) ? opaque(color) : adapt_area_color_to_theme(color, theme);
}

analysis::ColorMap adapt_color_map_to_theme(analysis::ColorMap on_paper, const Theme& theme) {
    using analysis::ColorMap;
    if (theme.brightness == Brightness::light) return on_paper;
    if (on_paper == ColorMap::viridis_reversed) return ColorMap::viridis;
    return on_paper == ColorMap::blue_white_red ? ColorMap::blue_dark_red : on_paper;
}

}  // namespace kvscope::gui
