#pragma once

#include <cairo.h>

#include "analysis/drawing/figure.h"
#include "app/figures/layout.h"

namespace kvscope::figures {

void set_color(cairo_t* cr, analysis::Rgb color, double alpha = 1);

void set_line(cairo_t* cr, const analysis::LineStyle& style);

/// Strokes the current path. Pale colors get a darker rim, because the background is white.
void stroke_current_path(cairo_t* cr, const analysis::LineStyle& style);

void stroke_segment(cairo_t* cr, double x0, double y0, double x1, double y1);

/// Draws a marker centered at (x, y), with a rim as in stroke_current_path(). A cross is stroked, other markers are
/// filled.
void draw_marker(cairo_t* cr, analysis::Marker marker, double x, double y, double size_pt, analysis::Rgb color);

/// Returns the box with edges at the nearest device pixels, at least one pixel wide and high.
[[nodiscard]] Box snap_to_pixels(cairo_t* cr, const Box& box);

}  // namespace kvscope::figures
