#pragma once

#include <implot.h>

#include <utility>

namespace kvscope::gui {

/// Factor on the range for one notch of the mouse wheel.
constexpr double wheel_zoom = 0.8;

/// Returns the range, moved to lie between `low` and `high`. A range that is too large is replaced by the limits. On a
/// logarithmic axis the ratio of the ends is kept; min, max, low and high must be positive.
std::pair<double, double> moved_within(double min, double max, double low, double high, bool is_logarithmic = false);

/// Stops panning at the limits. Call after ImPlot::SetupFinish. ImPlot's own constraint would shorten the range and
/// thereby zoom in.
void keep_within(ImAxis axis, double low, double high, bool is_logarithmic = false);

}  // namespace kvscope::gui
