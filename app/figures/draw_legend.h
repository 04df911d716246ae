#pragma once

#include "analysis/drawing/figure.h"
#include "app/figures/draw_figure.h"

namespace kvscope::figures {

/// Draws a color bar: a patch for each value if the scale has few whole numbers, otherwise a gradient.
void draw_color_bar(const Canvas& canvas, const analysis::ColorScale& scale, const ColorBarPlace& place);

void draw_legend(const Canvas& canvas, const analysis::Figure& figure, const LegendPlace& place);

}  // namespace kvscope::figures
