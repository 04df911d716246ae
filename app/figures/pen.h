#pragma once

#include <cairo.h>

#include "analysis/figure.h"
#include "app/figures/layout.h"

namespace kvscope::figures {

void set_color(cairo_t* cr, analysis::Rgb color, double alpha = 1);

/// Colour, width and dash of a stroke.
void set_line(cairo_t* cr, const analysis::LineStyle& style);

/// Strokes the path that was made; a colour too pale for white ground gets a darker rim.
void stroke_line(cairo_t* cr, const analysis::LineStyle& style);

void stroke_segment(cairo_t* cr, double x0, double y0, double x1, double y1);

/// A filled marker of `size_pt` across, centred; `cross` is stroked. Pale colours get a rim as in stroke_line.
void draw_marker(cairo_t* cr, analysis::Marker marker, double x, double y, double size_pt, analysis::Rgb color);

/// The box with its edges on the nearest device pixels, at least one pixel in each direction.
Box on_pixels(cairo_t* cr, const Box& box);

}  // namespace kvscope::figures
