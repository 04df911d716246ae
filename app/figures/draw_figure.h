#pragma once

#include <cairo.h>

#include "analysis/drawing/figure.h"
#include "app/figures/layout.h"

namespace kvscope::figures {

/// Cairo context to draw on, with coordinates in points.
struct Canvas {
    cairo_t* cr = nullptr;
    double dpi = 300;               ///< resolution of a bitmap, or of fine maps in vector files
    bool bitmap = false;            ///< whether edges are aligned to device pixels
    size_t most_rectangles = 4096;  ///< maps with more cells are drawn as an image
};

/// Draws the figure with its upper left corner at the origin. Errors are in the status of `canvas.cr`.
void draw_figure(const Canvas& canvas, const analysis::Figure& figure, const FigureLayout& layout);

}  // namespace kvscope::figures
