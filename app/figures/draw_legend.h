#pragma once

#include "analysis/figure.h"
#include "app/figures/draw_figure.h"

namespace kvscope::figures {

/// Draws a color bar: patches for a few whole numbers, else a gradient. Tick labels are below, the title to the left or
/// above.
void draw_color_bar(const Canvas& canvas, const analysis::ColorScale& scale, const ColorBarPlace& place);

/// Draws the legend, if the figure has entries.
void draw_legend(const Canvas& canvas, const analysis::Figure& figure, const LegendPlace& place);

}  // namespace kvscope::figures
