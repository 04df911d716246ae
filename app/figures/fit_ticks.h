#pragma once

#include "analysis/figure.h"
#include "analysis/ticks.h"

namespace kvscope::figures {

enum class Direction { horizontal, vertical };

/// Returns the position of a value on an axis: 0 at the left or bottom end, 1 at the other.
double axis_share(const analysis::Axis& axis, double value);

/// Returns the ticks whose labels fit on `length_pt` points, or every k-th tick if the axis defines its ticks.
analysis::Ticks fit_ticks(const analysis::Axis& axis, double length_pt, Direction direction);

/// Returns the ticks of a color bar: one per patch, or as on an axis for a gradient. Positions are shares of the bar.
analysis::Ticks color_bar_ticks(const analysis::ColorScale& scale, double length_pt);

}  // namespace kvscope::figures
