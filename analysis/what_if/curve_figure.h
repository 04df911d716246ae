#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/drawing/figure.h"
#include "analysis/what_if/what_if_curve.h"

namespace kvscope::analysis {

struct DrawnCurve {
    std::string label;
    LineStyle style;                 ///< Dash and marker are ignored, because the axis shows the budget.
    Subject subject;                 ///< first run of the curve
    std::vector<CurvePoint> points;  ///< in ascending order
    std::vector<std::pair<double, Subject>> recorded;  ///< points of recorded runs
    std::optional<int64_t> reaches;                    ///< result of smallest_budget_reaching_share()
};

/// Converts a value of measured_value() to a percentage for the axis.
[[nodiscard]] double to_axis_percent(double value, CurveMeasure measure, double full_bytes);

struct CurveAxes {
    CurveMeasure measure = CurveMeasure::coverage;
    std::string over = over_budget;
    double threshold = 0.9;  ///< share that curves should reach; drawn if `over` is the budget
    double full_bytes = 0;   ///< size of the full cache, for the measure `bytes`
};

inline constexpr CurveMeasure curve_measures[] = {CurveMeasure::coverage, CurveMeasure::attention, CurveMeasure::recall,
                                                  CurveMeasure::bytes};

/// Parses "coverage", "attention", "recall" or "bytes"; empty gives the first. @throws FigureError for other names
[[nodiscard]] CurveMeasure curve_measure_from_name(const std::string& name);

[[nodiscard]] std::string curve_measure_name(CurveMeasure measure);

/// Returns title and unit of the axis: "Coverage", "% of tokens".
[[nodiscard]] std::pair<std::string, std::string> axis_title_and_unit(CurveMeasure measure);

/// Draws all curves, points of recorded runs and the threshold. The caller adds name, title, caption and recipe.
[[nodiscard]] Figure curve_figure(std::span<const DrawnCurve> curves, const CurveAxes& axes);

}  // namespace kvscope::analysis
