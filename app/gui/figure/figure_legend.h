#pragma once

#include "analysis/figure.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Returns the height of draw_legend() at this width, or 0 if it draws nothing.
float legend_height(const analysis::Figure& figure, bool legend, bool color_bars, float width);

/// Draws color bars and legend entries side by side, in as many lines as needed.
void draw_legend(const Context& context, const analysis::Figure& figure, bool legend, bool color_bars, float width);

}  // namespace kvscope::gui
