#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/figure.h"
#include "analysis/what_if/what_if_curve.h"

namespace kvscope::analysis {

/// One curve as it is drawn.
struct DrawnCurve {
    std::string label;
    LineStyle style;                                   ///< dash and marker are not heeded: the axis tells budgets apart
    Subject subject;                                   ///< of the curve: its first run
    std::vector<CurvePoint> points;                    ///< ascending
    std::vector<std::pair<double, Subject>> recorded;  ///< runs of the trace: points of the curve
    std::optional<int64_t> reaches;                    ///< smallest_budget()
};

/// Where a value of the measure stands on the axis, in per cent. @param value as measured() gives it
double per_cent(double value, CurveMeasure measure, double full_bytes);

/// What all curves of a figure have in common.
struct CurveAxes {
    CurveMeasure measure = CurveMeasure::coverage;
    std::string over = over_budget;
    double threshold = 0.9;  ///< share that is to be reached; drawn where `over` is the budget
    double full_bytes = 0;   ///< of the full cache, for the measure `bytes`
};

/// All of them, as they are shown.
inline constexpr CurveMeasure curve_measures[] = {CurveMeasure::coverage, CurveMeasure::attention, CurveMeasure::recall,
                                                  CurveMeasure::bytes};

/// "coverage", "attention", "recall", "bytes". @throws FigureError for another name; empty is the first
CurveMeasure curve_measure(const std::string& name);

/// The name that curve_measure() reads back.
std::string name_of(CurveMeasure measure);

/// "Coverage (% of tokens)" as on the axis: title and unit.
std::pair<std::string, std::string> words_of(CurveMeasure measure);

/// A panel with a curve each, its recorded runs as points, and a rule at the threshold; the legend says at which
/// budget each reaches it. Lacks name, title, caption and recipe.
Figure curve_figure(std::span<const DrawnCurve> curves, const CurveAxes& axes);

}  // namespace kvscope::analysis
