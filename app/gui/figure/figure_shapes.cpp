#include "app/gui/figure/figure_shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "analysis/drawing/line_and_marker_shapes.h"
#include "analysis/drawing/ticks.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/drawing/shaped_text.h"

namespace kvscope::gui {
namespace {

using analysis::Axis;
using analysis::Marker;
using analysis::Scale;

double share_of(const Axis& axis, double value) {
    if (axis.scale == Scale::logarithmic) return std::log(value / axis.min) / std::log(axis.max / axis.min);
    return (value - axis.min) / (axis.max - axis.min);
}

double value_at(const Axis& axis, double share) {
    if (axis.scale == Scale::logarithmic) return axis.min * std::pow(axis.max / axis.min, share);
    return axis.min + share * (axis.max - axis.min);
}

/// Inverts gray labels on dark backgrounds, because their maps are inverted, too.
analysis::Rgb label_color(analysis::Rgb color, const Theme& theme) {
    const bool is_grey = color.r == color.g && color.g == color.b;
    if (theme.brightness == Brightness::light || !is_grey) return color;
    const auto turned = static_cast<uint8_t>(255 - color.r);
    return {turned, turned, turned};
}

void add_line(std::span<const ImVec2> points, const std::vector<float>& dashes, float width, ImU32 color,
              ImDrawList* list) {
    if (dashes.empty()) return list->AddPolyline(points.data(), static_cast<int>(points.size()), color, width);
    size_t at = 0;
    float left = dashes[0];
    for (size_t i = 0; i + 1 < points.size(); ++i) {
        ImVec2 from = points[i];
        const ImVec2 to = points[i + 1];
        float length = std::hypot(to.x - from.x, to.y - from.y);
        while (length > 0) {
            const float step = std::min(length, left);
            const ImVec2 next{from.x + (to.x - from.x) * step / length, from.y + (to.y - from.y) * step / length};
            if (at % 2 == 0) list->AddLine(from, next, color, width);
            from = next;
            length -= step;
            left -= step;
            if (left > 1e-3f) continue;
            at = (at + 1) % dashes.size();
            left = dashes[at];
        }
    }
}

/// Removes points that lie on the line between their neighbors, within a quarter of a pixel.
std::vector<ImVec2> thinned(const std::vector<ImVec2>& points) {
    constexpr float unseen = 0.25f;  // pixels
    constexpr float farthest = 60;   // pixels between kept points, so that gentle bends remain
    std::vector<ImVec2> kept;
    for (size_t i = 0; i < points.size(); ++i) {
        if (kept.empty() || i + 1 == points.size()) {
            kept.push_back(points[i]);
            continue;
        }
        const ImVec2 from = kept.back();
        const ImVec2 to = points[i + 1];
        const float length = std::hypot(to.x - from.x, to.y - from.y);
        const float beside =
            std::abs((to.x - from.x) * (from.y - points[i].y) - (from.x - points[i].x) * (to.y - from.y)) /
            std::max(length, 1e-3f);
        const bool turns_back =
            (points[i].x - from.x) * (to.x - points[i].x) + (points[i].y - from.y) * (to.y - points[i].y) < 0;
        if (beside > unseen || length > farthest || turns_back) kept.push_back(points[i]);
    }
    return kept;
}

struct ShapePainter {
    const Theme& theme;
    const analysis::Figure& figure;
    const HeatMap* map;
    const PlotFrame& frame;
    float weight;
    ImDrawList* list;

    float alpha() const { return std::min(weight, 1.0f); }
    ImVec2 place(double x, double y) const { return {frame.x_of(x), frame.y_of(y)}; }

    void draw_map(double x_begin, double x_end, double y_begin, double y_end, const MapColors& colors) const {
        if (!map) return;
        const ImVec2 a = place(x_begin, y_begin);
        const ImVec2 b = place(x_end, y_end);
        const ImVec2 from{std::max(std::min(a.x, b.x), frame.min.x), std::max(std::min(a.y, b.y), frame.min.y)};
        const ImVec2 to{std::min(std::max(a.x, b.x), frame.max.x), std::min(std::max(a.y, b.y), frame.max.y)};
        const auto column = [&](float pixel) {
            return (frame.x_at(pixel) - x_begin) / (x_end - x_begin) * static_cast<double>(map->columns());
        };
        const auto row = [&](float pixel) {
            return (frame.y_at(pixel) - y_begin) / (y_end - y_begin) * static_cast<double>(map->rows());
        };
        map->draw(list, from, to, {column(from.x), column(to.x), row(from.y), row(to.y)}, colors);
    }

    void operator()(const analysis::HeatMap& shape) const {
        draw_map(shape.x_begin, shape.x_end, shape.y_begin, shape.y_end,
                 make_map_colors(figure.color_scales[shape.color_scale], theme));
    }

    void operator()(const analysis::Categories& shape) const {
        MapColors colors;
        for (const auto& each : shape.classes)
            colors.classes.push_back(packed(adapt_area_color_to_theme(each.color, theme)));
        colors.ground = packed(theme.ground);
        draw_map(shape.x_begin, shape.x_end, shape.y_begin, shape.y_end, colors);
    }

    void draw_band(const analysis::Line& line) const {
        const ImVec4 color = adapt_line_color_to_theme(line.style.color, theme);
        for (size_t i = 0; i + 1 < line.low.size() && i + 1 < line.high.size(); ++i) {
            if (std::isnan(line.low[i]) || std::isnan(line.low[i + 1])) continue;
            list->AddQuadFilled(place(line.x[i], line.high[i]), place(line.x[i + 1], line.high[i + 1]),
                                place(line.x[i + 1], line.low[i + 1]), place(line.x[i], line.low[i]),
                                packed(color, 0.2f * alpha()));
        }
    }

    void operator()(const analysis::Line& line) const {
        std::vector<ImVec2> points;
        const auto flush = [&] {
            if (points.size() > 1) draw_styled_polyline(theme, line.style, thinned(points), weight, list);
            points.clear();
        };
        for (size_t i = 0; i < line.x.size(); ++i) {
            if (std::isnan(line.y[i])) {
                flush();
                continue;
            }
            points.push_back(place(line.x[i], line.y[i]));
        }
        flush();
        if (line.arrow && line.x.size() > 1) draw_arrow_head(line);
        if (line.style.marker == Marker::none) return;
        for (size_t i = 0; i < line.x.size(); ++i) {
            if (std::isnan(line.y[i])) continue;
            draw_marker(theme, line.style.marker, place(line.x[i], line.y[i]),
                        static_cast<float>(analysis::marker_size(line.style)) * pixels_per_point(), line.style.color,
                        alpha(), list);
        }
    }

    void draw_arrow_head(const analysis::Line& line) const {
        const auto corner = [&](size_t i) -> analysis::Corner {
            return {frame.x_of(line.x[i]), frame.y_of(line.y[i])};
        };
        const size_t last = line.x.size() - 1;
        const auto head =
            analysis::arrow_head(corner(last - 1), corner(last), pixels_per_point() * std::clamp(weight, 1.0f, 1.5f));
        if (head.empty()) return;
        const auto pixel = [](const analysis::Corner& at) {
            return ImVec2{static_cast<float>(at[0]), static_cast<float>(at[1])};
        };
        list->AddTriangleFilled(pixel(head[0]), pixel(head[1]), pixel(head[2]),
                                packed(adapt_line_color_to_theme(line.style.color, theme), alpha()));
    }

    void operator()(const analysis::Bars& bars) const {
        const ImU32 color = packed(adapt_line_color_to_theme(bars.color, theme), alpha());
        for (size_t i = 0; i < bars.x.size(); ++i) {
            if (std::isnan(bars.y[i])) continue;
            const ImVec2 a = place(bars.x[i] - bars.width / 2, bars.base);
            const ImVec2 b = place(bars.x[i] + bars.width / 2, bars.y[i]);
            list->AddRectFilled({std::min(a.x, b.x), std::min(a.y, b.y)}, {std::max(a.x, b.x), std::max(a.y, b.y)},
                                color);
        }
    }

    void operator()(const analysis::Scatter& scatter) const {
        for (size_t i = 0; i < scatter.x.size(); ++i) {
            if (std::isnan(scatter.x[i]) || std::isnan(scatter.y[i])) continue;
            draw_marker(theme, scatter.marker, place(scatter.x[i], scatter.y[i]),
                        static_cast<float>(scatter.size_pt) * pixels_per_point() * std::max(weight, 1.0f),
                        scatter.color, alpha(), list);
        }
    }

    void operator()(const analysis::Rule& rule) const {
        const ImVec2 from =
            rule.horizontal ? ImVec2{frame.min.x, frame.y_of(rule.value)} : ImVec2{frame.x_of(rule.value), frame.min.y};
        const ImVec2 to = rule.horizontal ? ImVec2{frame.max.x, from.y} : ImVec2{from.x, frame.max.y};
        const std::array<ImVec2, 2> points = {from, to};
        draw_styled_polyline(theme, rule.style, points, weight, list);
        const ImVec2 size = ImGui::CalcTextSize(rule.label.c_str());
        const ImVec2 at = rule.horizontal
                              ? ImVec2{from.x + 4 + text_width(rule.beside), top_of_label(frame, from.y, size.y)}
                              : ImVec2{to.x + 3, from.y + 2};
        list->AddText(at, packed(adapt_area_color_to_theme(rule.style.color, theme)), rule.label.c_str());
    }

    void operator()(const analysis::TextLabel& label) const {
        const ImVec2 at = place(label.x, label.y);
        const float width = text_width(label.text);
        const ImVec2 corner{at.x - width / 2, at.y - ImGui::GetTextLineHeight() / 2};
        const ImU32 color = packed(label_color(label.color, theme));
        draw_text(list, corner, color, label.text);
        // The app's font has no bold style: a second copy makes the strokes wider.
        if (label.bold) draw_text(list, {corner.x + 0.06f * ImGui::GetFontSize(), corner.y}, color, label.text);
        const float bottom = corner.y + ImGui::GetTextLineHeight();
        if (label.underlined) list->AddLine({corner.x, bottom}, {corner.x + width, bottom}, color);
    }
};

}  // namespace

float PlotFrame::x_of(double x) const {
    const double share = share_of(x_axis, x);
    return min.x + static_cast<float>(x_axis.reversed ? 1 - share : share) * (max.x - min.x);
}

float PlotFrame::y_of(double y) const {
    const double share = share_of(y_axis, y);
    return min.y + static_cast<float>(y_axis.reversed ? share : 1 - share) * (max.y - min.y);
}

double PlotFrame::x_at(float pixel) const {
    const double share = static_cast<double>(pixel - min.x) / static_cast<double>(max.x - min.x);
    return value_at(x_axis, x_axis.reversed ? 1 - share : share);
}

double PlotFrame::y_at(float pixel) const {
    const double share = static_cast<double>(pixel - min.y) / static_cast<double>(max.y - min.y);
    return value_at(y_axis, y_axis.reversed ? share : 1 - share);
}

void draw_styled_polyline(const Theme& theme, const analysis::LineStyle& style, std::span<const ImVec2> points,
                          float weight, ImDrawList* list) {
    const float width =
        std::max(static_cast<float>(style.width_pt) * pixels_per_point(), 1.0f) * std::max(weight, 1.0f);
    std::vector<float> dashes;
    for (const double length : analysis::dash_lengths(style))
        dashes.push_back(static_cast<float>(length) * pixels_per_point());
    const float alpha = std::min(weight, 1.0f);
    if (weight > 2) add_line(points, {}, width + 2, packed(theme.ink, 0.85f), list);
    if (wants_rim(theme, style.color)) add_line(points, dashes, width + 1, rim_of(style.color, alpha), list);
    add_line(points, dashes, width, packed(adapt_line_color_to_theme(style.color, theme), alpha), list);
}

void draw_shape(const Theme& theme, const analysis::Figure& figure, const analysis::Shape& shape, const HeatMap* map,
                const PlotFrame& frame, float weight, ImDrawList* list) {
    std::visit(ShapePainter{theme, figure, map, frame, weight, list}, shape);
}

void draw_band(const Theme& theme, const analysis::Figure& figure, const analysis::Shape& shape, const PlotFrame& frame,
               float weight, ImDrawList* list) {
    if (const auto* line = std::get_if<analysis::Line>(&shape))
        ShapePainter{theme, figure, nullptr, frame, weight, list}.draw_band(*line);
}

float top_of_label(const PlotFrame& frame, float line, float height) {
    const float above = line - height - 1;
    return above >= frame.min.y ? above : line + 1;
}

MapColors make_map_colors(const analysis::ColorScale& scale, const Theme& theme) {
    MapColors colors;
    colors.map = adapt_color_map_to_theme(scale.map, theme);
    colors.map_begin = static_cast<float>(scale.map_begin);
    colors.map_end = static_cast<float>(scale.map_end);
    // The lowest value must differ from the background, which means "none".
    if (colors.map == analysis::ColorMap::viridis && !scale.background_label.empty())
        colors.map_begin = std::max(colors.map_begin, 0.25f);
    colors.min = static_cast<float>(scale.min);
    colors.max = static_cast<float>(scale.max);
    colors.logarithmic = scale.scale == Scale::logarithmic;
    colors.ground_below_min = !scale.background_label.empty();
    colors.ground = packed(theme.ground);
    return colors;
}

std::string axis_title_with_unit(const Axis& axis) { return analysis::axis_title(axis.title, axis.unit, 0); }

void draw_column_mark(const PlotFrame& frame, ImDrawList* list, double x, ImU32 color) {
    const float at = frame.x_of(x);
    list->AddLine({at, frame.min.y}, {at, frame.max.y}, color);
}

bool has_map(const analysis::Panel& panel) {
    return std::ranges::any_of(panel.shapes, [](const analysis::Shape& shape) {
        return std::holds_alternative<analysis::HeatMap>(shape) || std::holds_alternative<analysis::Categories>(shape);
    });
}

}  // namespace kvscope::gui
