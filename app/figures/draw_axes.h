#pragma once

#include "analysis/figure.h"
#include "app/figures/draw_figure.h"

namespace kvscope::figures {

/// Points on the page of data coordinates.
double x_on_page(const analysis::Panel& panel, const Box& data, double x);
double y_on_page(const analysis::Panel& panel, const Box& data, double y);

/// Faint lines at the y ticks, beneath curves.
void draw_grid_lines(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place);

/// Ticks and their labels; a whole frame around maps, the two axes elsewhere.
void draw_axes(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place, bool framed);

/// Axis titles, centred along `across` as far as they stay on the page of that width or height.
void draw_x_title(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place, const Box& across,
                  double page_width);
void draw_y_title(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place, const Box& across,
                  double page_height);

}  // namespace kvscope::figures
