#pragma once

#include "analysis/figure.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// The height that draw_legend() takes at this width; 0 where there is nothing to draw.
float legend_height(const analysis::Figure& figure, bool legend, bool color_bars, float width);

/// Colour bars and legend entries beside each other, in as many lines as they need.
void draw_legend(const Context& context, const analysis::Figure& figure, bool legend, bool color_bars, float width);

}  // namespace kvscope::gui
