#pragma once

#include <cairo.h>

#include "analysis/figure.h"
#include "app/figures/layout.h"

namespace kvscope::figures {

void set_color(cairo_t* cr, analysis::Rgb color, double alpha = 1);

void set_line(cairo_t* cr, const analysis::LineStyle& style);

/// Strokes the current path. A color too pale for the white background gets a darker rim.
void stroke_line(cairo_t* cr, const analysis::LineStyle& style);

void stroke_segment(cairo_t* cr, double x0, double y0, double x1, double y1);

/// Draws a centered, filled marker of diameter `size_pt`; `cross` is stroked. Pale colors get a rim as in stroke_line.
void draw_marker(cairo_t* cr, analysis::Marker marker, double x, double y, double size_pt, analysis::Rgb color);

/// Returns the box with its edges moved to the nearest device pixels, at least one pixel wide and high.
Box on_pixels(cairo_t* cr, const Box& box);

}  // namespace kvscope::figures
