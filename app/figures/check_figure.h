#pragma once

#include "analysis/figure.h"

namespace kvscope::figures {

/// Checks a figure's sizes, color scales, grid positions and axes. @throws LayoutError (layout.h) if one is
/// inconsistent
void check_figure(const analysis::Figure& figure);

}  // namespace kvscope::figures
