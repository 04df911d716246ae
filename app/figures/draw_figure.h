#pragma once

#include <cairo.h>

#include "analysis/figure.h"
#include "app/figures/layout.h"

namespace kvscope::figures {

/// The target of a drawing. User units are points.
struct Canvas {
    cairo_t* cr = nullptr;
    double dpi = 300;               ///< resolution of a bitmap; in vector files, of maps with finer cells
    bool bitmap = false;            ///< align edges to device pixels
    size_t most_rectangles = 4096;  ///< maps with more cells are drawn as one image, others cell by cell
};

/// Draws the figure with its upper left corner at the origin. The status of `canvas.cr` stores Cairo's errors.
void draw_figure(const Canvas& canvas, const analysis::Figure& figure, const FigureLayout& layout);

}  // namespace kvscope::figures
