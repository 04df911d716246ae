#pragma once

#include <implot.h>

#include <utility>

namespace kvscope::gui {

/// Factor by which one notch of the mouse wheel changes a range.
inline constexpr double wheel_zoom = 0.8;

/// Moves a range into the limits. If it is larger than the limits, returns the limits. On a logarithmic axis, the ratio
/// of its ends is kept and all numbers must be positive.
[[nodiscard]] std::pair<double, double> move_range_within_limits(double min, double max, double low, double high,
                                                                 bool is_logarithmic = false);

/// Stops panning at the limits. Call after ImPlot::SetupFinish. ImPlot's own constraint would shorten the range.
void keep_axis_within_limits(ImAxis axis, double low, double high, bool is_logarithmic = false);

}  // namespace kvscope::gui
