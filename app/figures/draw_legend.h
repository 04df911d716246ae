#pragma once

#include "analysis/figure.h"
#include "app/figures/draw_figure.h"

namespace kvscope::figures {

/// Patches for a few whole numbers, else a smooth bar; labels below, title beside or above.
void draw_color_bar(const Canvas& canvas, const analysis::ColorScale& scale, const ColorBarPlace& place);

/// Nothing for a figure without legend entries.
void draw_legend(const Canvas& canvas, const analysis::Figure& figure, const LegendPlace& place);

}  // namespace kvscope::figures
