#pragma once

#include "analysis/drawing/figure.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Returns the height that draw_legend() needs at this width, or 0 if there is no legend.
[[nodiscard]] float legend_height(const analysis::Figure& figure, bool legend, bool color_bars, float width);

void draw_legend(const Context& context, const analysis::Figure& figure, bool legend, bool color_bars, float width);

}  // namespace kvscope::gui
