#include "analysis/drawing/line_and_marker_shapes.h"

#include <algorithm>
#include <cmath>

namespace kvscope::analysis {
namespace {

std::vector<double> pattern_of(Dash dash) {
    switch (dash) {
        case Dash::solid:
            return {};
        case Dash::dashed:
            return {4, 2};
        case Dash::dotted:
            return {1, 1.5};
        case Dash::dash_dotted:
            return {4, 1.5, 1, 1.5};
    }
    return {};
}

}  // namespace

std::vector<double> dash_lengths(const LineStyle& style) {
    std::vector<double> lengths = pattern_of(style.dash);
    for (double& length : lengths) length *= std::max(style.width_pt, 0.75);
    return lengths;
}

std::vector<Corner> marker_corners(Marker marker) {
    switch (marker) {
        case Marker::none:
        case Marker::circle:
            return {};
        case Marker::square:
            return {{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}};
        case Marker::triangle:
            return {{0, -1.15}, {1.05, 0.75}, {-1.05, 0.75}};
        case Marker::diamond:
            return {{0, -1.2}, {1.2, 0}, {0, 1.2}, {-1.2, 0}};
        case Marker::cross:
            return {{-1, -1}, {1, 1}, {-1, 1}, {1, -1}};
    }
    return {};
}

double marker_size(const LineStyle& style) { return 2.6 + style.width_pt; }

double cross_stroke_width(double size) { return std::max(0.75, size / 4); }

std::vector<Corner> arrow_head(Corner from, Corner to, double point) {
    const double before = 2.2 * point, reach = 3.4 * point, half = 1.3 * point;
    const double length = std::hypot(from[0] - to[0], from[1] - to[1]);
    if (length < before + reach) return {};
    const double back_x = (from[0] - to[0]) / length;
    const double back_y = (from[1] - to[1]) / length;
    const Corner tip{to[0] + before * back_x, to[1] + before * back_y};
    const Corner foot{tip[0] + reach * back_x, tip[1] + reach * back_y};
    return {
        tip, {foot[0] - half * back_y, foot[1] + half * back_x}, {foot[0] + half * back_y, foot[1] - half * back_x}};
}

bool wants_rim(Rgb color) { return 0.2126 * color.r + 0.7152 * color.g + 0.0722 * color.b > 200; }

Rgb rim_of(Rgb color) {
    const auto darker = [](uint8_t channel) { return static_cast<uint8_t>(channel * 0.55); };
    return {darker(color.r), darker(color.g), darker(color.b)};
}

}  // namespace kvscope::analysis
