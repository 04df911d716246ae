#pragma once

#include "analysis/figure.h"
#include "analysis/ticks.h"

namespace kvscope::figures {

enum class Direction { horizontal, vertical };

/// Where on an axis a value is, 0 at its left or bottom end and 1 at the other (turned round on a reversed axis).
double axis_share(const analysis::Axis& axis, double value);

/// As many ticks as have room for their labels on `length_pt` points; of an axis' own ticks every k-th where they have
/// not.
analysis::Ticks fit_ticks(const analysis::Axis& axis, double length_pt, Direction direction);

/// Ticks along a colour bar: the middle of each patch of a scale of whole numbers, else as on an axis.
/// Values are shares of the bar's width, 0 to 1.
analysis::Ticks color_bar_ticks(const analysis::ColorScale& scale, double length_pt);

}  // namespace kvscope::figures
