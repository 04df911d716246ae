#include "analysis/what_if/curve_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "analysis/drawing/covered_curves.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"

namespace kvscope::analysis {
namespace {

constexpr Rgb grey{110, 110, 110};

struct MeasureWords {
    CurveMeasure measure;
    const char *name, *title, *unit;
};
constexpr std::array measures = {
    MeasureWords{CurveMeasure::coverage, "coverage", "Coverage", "% of tokens"},
    MeasureWords{CurveMeasure::attention, "attention", "Attention kept", "%"},
    MeasureWords{CurveMeasure::recall, "recall", "Recall", "% of best tokens"},
    MeasureWords{CurveMeasure::bytes, "bytes", "Cache", "% of the full cache's bytes"},
};

double height_of(const CurvePoint& point, const CurveAxes& axes) {
    return to_axis_percent(measured_value(point, axes.measure), axes.measure, axes.full_bytes);
}

Axis across(std::span<const DrawnCurve> curves, const CurveAxes& axes) {
    double least = INFINITY;
    double most = -INFINITY;
    for (const DrawnCurve& curve : curves)
        for (const CurvePoint& point : curve.points) {
            least = std::min(least, point.x);
            most = std::max(most, point.x);
        }
    Axis axis;
    if (axes.over == over_budget) {
        axis.title = "Budget";
        axis.unit = "entries per head";
        axis.scale = Scale::logarithmic;
        axis.min = std::max(least, 1.0) / 1.06;
        axis.max = most * 1.06;
    } else {
        axis.title = axes.over;
        const double margin = most > least ? 0.03 * (most - least) : 0.5;
        axis.min = least - margin;
        axis.max = most + margin;
    }
    return axis;
}

Axis upwards(std::span<const DrawnCurve> curves, const CurveAxes& axes) {
    double largest = 0;
    for (const DrawnCurve& curve : curves)
        for (const CurvePoint& point : curve.points)
            if (const double value = height_of(point, axes); std::isfinite(value)) largest = std::max(largest, value);
    const auto [title, unit] = axis_title_and_unit(axes.measure);
    Axis axis;
    axis.title = title;
    axis.unit = unit;
    axis.max = largest >= 95 ? std::max(105.0, largest * 1.05) : std::max(largest * 1.08, 1e-3);
    return axis;
}

Line line_of(const DrawnCurve& curve, const CurveAxes& axes) {
    Line line;
    line.label = curve.label;
    line.subject = curve.subject;
    line.style = {curve.style.color, Dash::solid, Marker::none, 1.0};
    for (const CurvePoint& point : curve.points) {
        line.x.push_back(point.x);
        line.y.push_back(height_of(point, axes));
    }
    return line;
}

std::vector<Shape> points_of(const DrawnCurve& curve, const CurveAxes& axes) {
    std::vector<Shape> shapes;
    for (const auto& [x, subject] : curve.recorded) {
        const double at = x;
        const auto point = std::find_if(curve.points.begin(), curve.points.end(),
                                        [at](const CurvePoint& each) { return each.x == at; });
        if (point == curve.points.end()) continue;
        Scatter mark;
        mark.label = curve.label;
        mark.subject = subject;
        mark.x = {x};
        mark.y = {height_of(*point, axes)};
        mark.marker = Marker::circle;
        mark.size_pt = 3.2;
        mark.color = curve.style.color;
        shapes.emplace_back(std::move(mark));
    }
    return shapes;
}

}  // namespace

CurveMeasure curve_measure_from_name(const std::string& name) {
    if (name.empty()) return measures.front().measure;
    for (const MeasureWords& each : measures)
        if (name == each.name) return each.measure;
    throw FigureError(
        fmt::format("the figure curves has no source '{}'; it has coverage, attention, recall, bytes", name));
}

std::string curve_measure_name(CurveMeasure measure) {
    for (const MeasureWords& each : measures)
        if (each.measure == measure) return each.name;
    return {};
}

std::pair<std::string, std::string> axis_title_and_unit(CurveMeasure measure) {
    for (const MeasureWords& each : measures)
        if (each.measure == measure) return {each.title, each.unit};
    return {};
}

double to_axis_percent(double value, CurveMeasure measure, double full_bytes) {
    return 100 * (measure == CurveMeasure::bytes ? value / std::max(full_bytes, 1.0) : value);
}

Figure curve_figure(std::span<const DrawnCurve> curves, const CurveAxes& axes) {
    Figure figure;
    figure.panel_height_mm = 48;
    Panel panel;
    panel.x = across(curves, axes);
    panel.y = upwards(curves, axes);
    const bool has_threshold = axes.over == over_budget && axes.measure != CurveMeasure::bytes;
    const std::string threshold = format_number(100 * axes.threshold, 3) + " %";
    if (has_threshold) {
        Rule rule;
        rule.value = 100 * axes.threshold;
        rule.label = threshold;
        rule.style = {grey, Dash::dashed, Marker::none, 0.5};
        panel.shapes.emplace_back(std::move(rule));
    }
    for (const DrawnCurve& curve : curves) {
        Line line = line_of(curve, axes);
        line.series = static_cast<int>(figure.legend.size());
        std::string behind;
        if (has_threshold)
            behind = curve.reaches ? fmt::format(": {} at {}", threshold, format_count(*curve.reaches))
                                   : fmt::format(": below {}", threshold);
        figure.legend.push_back({curve.label + behind,
                                 LegendEntry::Symbol::line,
                                 {curve.style.color, Dash::solid, Marker::none, 1.0},
                                 "",
                                 behind,
                                 line.series});
        panel.shapes.emplace_back(std::move(line));
    }
    for (const DrawnCurve& curve : curves) {
        std::vector<Shape> points = points_of(curve, axes);
        std::move(points.begin(), points.end(), std::back_inserter(panel.shapes));
    }
    figure.panels.push_back(std::move(panel));
    mark_hidden_series(figure);
    return figure;
}

}  // namespace kvscope::analysis
