#pragma once

#include "analysis/drawing/figure.h"

namespace kvscope::figures {

/// Checks a figure's sizes, color scales, grid positions and axes. @throws LayoutError if any is inconsistent
void check_figure(const analysis::Figure& figure);

}  // namespace kvscope::figures
