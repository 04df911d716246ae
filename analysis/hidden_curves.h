#pragma once

#include "analysis/figure.h"

namespace kvscope::analysis {

/// Whether nothing of a curve is seen below another one that is drawn later: both have the same x, and wherever the
/// lower one has a y, the other's is as high to 0.3 % of the axis, which is less than a line's width.
bool is_hidden_by(const Line& below, const Line& above, const Axis& y);

}  // namespace kvscope::analysis
