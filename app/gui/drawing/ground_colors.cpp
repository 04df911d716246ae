#include "app/gui/drawing/ground_colors.h"

#include <algorithm>

namespace kvscope::gui {

namespace {

/// 0 black, 1 white.
double luminance(ImVec4 color) { return 0.2126 * color.x + 0.7152 * color.y + 0.0722 * color.z; }

}  // namespace

ImVec4 mixed(ImVec4 a, ImVec4 b, float share) {
    return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y), a.z + share * (b.z - a.z), 1};
}

ImVec4 seen_on_ground(analysis::Rgb color, const Theme& theme) {
    ImVec4 seen = on_ground(color, theme);
    if (theme.brightness == Brightness::light || color == analysis::Rgb{}) return seen;
    const auto [least, most] = std::minmax({color.r, color.g, color.b});
    if (least > 0xc0) {  // nearly paper becomes nearly ground, of the same hue
        if (most - least < 8) return theme.line;
        const auto full = [&, rest = static_cast<float>(255 - least)](uint8_t channel) {
            return 1 - static_cast<float>(255 - channel) / rest;
        };
        return mixed(theme.ground, {full(color.r), full(color.g), full(color.b), 1}, 0.3f);
    }
    for (int i = 0; i < 10 && luminance(seen) < 0.3; ++i) seen = mixed(seen, theme.ink, 0.1f);
    return seen;
}

ImVec4 line_on_ground(analysis::Rgb color, const Theme& theme) {
    const auto [least, most] = std::minmax({color.r, color.g, color.b});
    const bool is_pale_hue = least > 0xc0 && most - least >= 8;
    return is_pale_hue ? on_ground(color, theme) : seen_on_ground(color, theme);
}

analysis::ColorMap map_on_ground(analysis::ColorMap on_paper, const Theme& theme) {
    using analysis::ColorMap;
    if (theme.brightness == Brightness::light) return on_paper;
    if (on_paper == ColorMap::viridis_reversed) return ColorMap::viridis;
    return on_paper == ColorMap::blue_white_red ? ColorMap::blue_dark_red : on_paper;
}

}  // namespace kvscope::gui
