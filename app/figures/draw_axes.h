#pragma once

#include "analysis/drawing/figure.h"
#include "app/figures/draw_figure.h"

namespace kvscope::figures {

[[nodiscard]] double x_on_page(const analysis::Panel& panel, const Box& data, double x);
[[nodiscard]] double y_on_page(const analysis::Panel& panel, const Box& data, double y);

void draw_grid_lines(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place);

/// Draws the axes with ticks and tick labels. @param framed whether all four sides are drawn, as around maps
void draw_axes(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place, bool framed);

/// Draws an axis title centered along `across`, or moved so that it stays on the page.
void draw_x_title(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place, const Box& across,
                  double page_width);
void draw_y_title(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place, const Box& across,
                  double page_height);

}  // namespace kvscope::figures
