#pragma once

#include <cstddef>
#include <vector>

#include "analysis/figure.h"

namespace kvscope::figures {

/// A block of colours, row 0 at the top of the page.
struct Raster {
    size_t width = 0;
    size_t height = 0;
    std::vector<analysis::Rgb> pixels;  ///< (height, width)
};

/// How many cells of a grid an axis shows, whether it shows each of them whole, and which.
struct Window {
    double begin = 0;        ///< in cells from the grid's first, at the left or top of the panel
    double end = 0;          ///< below `begin` where the axis runs against the grid
    size_t whole_cells = 0;  ///< cells shown where every one is whole; 0 otherwise
};

/// The part of `n_cells` cells between data coordinates cells_begin and cells_end that the axis shows. `downwards`: of
/// a y axis, which is drawn from the top.
Window visible_window(const analysis::Axis& axis, double cells_begin, double cells_end, size_t n_cells, bool downwards);

/// Pixels for a side of a panel: one for each device pixel where `exact_pixels` is set (a bitmap) or cells are finer
/// than that, and otherwise a whole multiple of the cells, so that a vector file's cells are all of one size and sharp
/// in viewers that smooth images.
size_t raster_side(const Window& window, size_t device_pixels, bool exact_pixels);

/// The colour of a value; `ground` for NaN and for what lies below a scale that has a `background_label`.
analysis::Rgb color_of(const analysis::ColorScale& scale, double value, analysis::Rgb ground);

/// Cells that share a pixel are reduced as the map asks; a pixel beside the grid is ground.
Raster rasterize(const analysis::HeatMap& map, const analysis::ColorScale& scale, const Window& columns,
                 const Window& rows, size_t width, size_t height, analysis::Rgb ground);
Raster rasterize(const analysis::Categories& map, const Window& columns, const Window& rows, size_t width,
                 size_t height, analysis::Rgb ground);

}  // namespace kvscope::figures
