#pragma once

#include "analysis/figure.h"

namespace kvscope::figures {

/// @throws LayoutError (layout.h) naming what contradicts itself: sizes of maps and curves, indices of colour scales,
/// places in the grid, empty axes.
void check_figure(const analysis::Figure& figure);

}  // namespace kvscope::figures
