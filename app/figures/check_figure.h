#pragma once

#include "analysis/figure.h"

namespace kvscope::figures {

/// Checks that a figure is consistent: sizes of maps and curves, indices of color scales, positions in the grid, ranges
/// of axes.
/// @throws LayoutError (layout.h) that names the first inconsistency
void check_figure(const analysis::Figure& figure);

}  // namespace kvscope::figures
