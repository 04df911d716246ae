#pragma once

#include <implot.h>

#include <utility>

namespace kvscope::gui {

/// What one notch of the wheel leaves of a range when it zooms in.
constexpr double wheel_zoom = 0.8;

/// The range moved back between the limits as it is, or all of them where it is larger. On a logarithmic axis its ends
/// keep their ratio. @param min, max above 0 where `is_logarithmic`
std::pair<double, double> moved_within(double min, double max, double low, double high, bool is_logarithmic = false);

/// Behind ImPlot::SetupFinish: what is dragged beyond the limits stops there. (ImPlot's own constraint would cut the
/// range short, which zooms in.)
void keep_within(ImAxis axis, double low, double high, bool is_logarithmic = false);

}  // namespace kvscope::gui
