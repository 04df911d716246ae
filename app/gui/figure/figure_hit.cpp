#include "app/gui/figure/figure_hit.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

namespace kvscope::gui {
namespace {

constexpr float reach = 10;  // largest distance in pixels between mouse and curve

float distance_to_segment(ImVec2 p, ImVec2 a, ImVec2 b) {
    const ImVec2 nearest = ImLineClosestPoint(a, b, p);
    return std::hypot(p.x - nearest.x, p.y - nearest.y);
}

struct HitFinder {
    const PlotFrame& frame;
    ImVec2 mouse;
    FigureHit& hit;
    float nearest = reach;
    int shape = 0;

    void offer(float distance, int point) {
        if (distance >= nearest) return;
        nearest = distance;
        hit.shape = shape;
        hit.point = point;
        hit.row = hit.column = -1;
    }

    ImVec2 place(double x, double y) const { return {frame.x_of(x), frame.y_of(y)}; }

    void cell(size_t rows, size_t columns, double x_begin, double x_end, double y_begin, double y_end) {
        const double column = std::floor((hit.x - x_begin) / (x_end - x_begin) * static_cast<double>(columns));
        const double row = std::floor((hit.y - y_begin) / (y_end - y_begin) * static_cast<double>(rows));
        if (column < 0 || row < 0 || column >= static_cast<double>(columns) || row >= static_cast<double>(rows)) return;
        if (hit.point >= 0) return;
        hit.shape = shape;
        hit.row = static_cast<int>(row);
        hit.column = static_cast<int>(column);
    }

    void operator()(const analysis::HeatMap& map) {
        cell(map.rows, map.columns, map.x_begin, map.x_end, map.y_begin, map.y_end);
        if (hit.shape == shape && hit.row >= 0)
            hit.value = map.values[static_cast<size_t>(hit.row) * map.columns + static_cast<size_t>(hit.column)];
    }
    void operator()(const analysis::Categories& map) {
        cell(map.rows, map.columns, map.x_begin, map.x_end, map.y_begin, map.y_end);
    }
    void operator()(const analysis::Line& line) {
        for (size_t i = 0; i < line.x.size(); ++i) {
            if (std::isnan(line.y[i])) continue;
            const ImVec2 at = place(line.x[i], line.y[i]);
            offer(std::hypot(mouse.x - at.x, mouse.y - at.y) - 2, static_cast<int>(i));
            if (i + 1 >= line.x.size() || std::isnan(line.y[i + 1])) continue;
            const ImVec2 next = place(line.x[i + 1], line.y[i + 1]);
            if (mouse.x < std::min(at.x, next.x) - reach || mouse.x > std::max(at.x, next.x) + reach) continue;
            offer(distance_to_segment(mouse, at, next),
                  static_cast<int>(std::abs(mouse.x - at.x) <= std::abs(mouse.x - next.x) ? i : i + 1));
        }
    }
    void operator()(const analysis::Bars& bars) {
        for (size_t i = 0; i < bars.x.size(); ++i) {
            const bool across = std::abs(hit.x - bars.x[i]) <= bars.width / 2;
            const bool up = hit.y >= std::min(bars.base, bars.y[i]) && hit.y <= std::max(bars.base, bars.y[i]);
            if (across && up) offer(0, static_cast<int>(i));
        }
    }
    void operator()(const analysis::Scatter& scatter) {
        for (size_t i = 0; i < scatter.x.size(); ++i) {
            const ImVec2 at = place(scatter.x[i], scatter.y[i]);
            offer(std::hypot(mouse.x - at.x, mouse.y - at.y) - 4, static_cast<int>(i));
        }
    }
    void operator()(const analysis::Rule&) {}
    void operator()(const analysis::TextLabel&) {}
};

}  // namespace

void find_hit(const analysis::Panel& panel, const PlotFrame& frame, ImVec2 mouse, FigureHit& hit) {
    HitFinder finder{frame, mouse, hit};
    for (size_t s = 0; s < panel.shapes.size(); ++s) {
        finder.shape = static_cast<int>(s);
        std::visit(finder, panel.shapes[s]);
    }
    analysis::SubjectPair there = analysis::subjects_at_coordinates(panel, hit.x, hit.y);
    if (hit.point >= 0) {
        const auto& shape = panel.shapes[static_cast<size_t>(hit.shape)];
        there.a = there.b = analysis::subject_of_point(panel, shape, static_cast<size_t>(hit.point));
    }
    hit.subject = there.a;
    hit.other = there.b;
}

}  // namespace kvscope::gui
