#pragma once

#include "analysis/drawing/figure.h"
#include "analysis/drawing/ticks.h"

namespace kvscope::figures {

enum class Direction { horizontal, vertical };

/// Returns the position of a value on an axis, from 0 at the left or bottom end to 1 at the right or top end.
[[nodiscard]] double position_on_axis(const analysis::Axis& axis, double value);

/// Returns the ticks whose labels fit on `length_pt` points, or every k-th tick if the axis defines its ticks.
[[nodiscard]] analysis::Ticks fit_ticks(const analysis::Axis& axis, double length_pt, Direction direction);

/// Returns one tick per patch of a color bar, or the ticks of an axis if the bar is a gradient. Positions are 0 to 1.
[[nodiscard]] analysis::Ticks color_bar_ticks(const analysis::ColorScale& scale, double length_pt);

}  // namespace kvscope::figures
