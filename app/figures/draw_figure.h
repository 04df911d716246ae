#pragma once

#include <cairo.h>

#include "analysis/figure.h"
#include "app/figures/layout.h"

namespace kvscope::figures {

/// What a figure is drawn on. User units are points; `dpi` is a bitmap's resolution, and in vector files the one at
/// which maps with finer cells are reduced.
struct Canvas {
    cairo_t* cr = nullptr;
    double dpi = 300;
    bool bitmap = false;            ///< edges fall on device pixels
    size_t most_rectangles = 4096;  ///< cells of a map that are drawn one by one; one with more is an image
};

/// Draws the figure with its upper left corner at the origin. Errors of Cairo stay in the status of `canvas.cr`.
void draw_figure(const Canvas& canvas, const analysis::Figure& figure, const FigureLayout& layout);

}  // namespace kvscope::figures
