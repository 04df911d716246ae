#pragma once

#include <cstddef>
#include <vector>

#include "analysis/drawing/figure.h"

namespace kvscope::figures {

/// Pixels of a map; row 0 is at the top of the page.
struct Raster {
    size_t width = 0;
    size_t height = 0;
    std::vector<analysis::Rgb> pixels;  ///< (height, width)
};

struct Window {
    double begin = 0;        ///< cell coordinate at the left or top of the panel
    double end = 0;          ///< cell coordinate at the right or bottom; below `begin` for a reversed axis
    size_t whole_cells = 0;  ///< number of visible cells; 0 if any cell is only partly visible
};

/// Returns the visible part of `n_cells` cells between two data coordinates. @param downwards true for a y axis
[[nodiscard]] Window visible_window(const analysis::Axis& axis, double cells_begin, double cells_end, size_t n_cells,
                                    bool downwards);

/// Returns the number of pixels along a side: the number of device pixels for bitmaps and for fine cells. Other maps
/// get a multiple of the number of cells, so that all cells have the same size.
[[nodiscard]] size_t raster_side(const Window& window, size_t device_pixels, bool exact_pixels);

/// Returns the color of a value, or `ground` for NaN and for values below a scale with a `background_label`.
[[nodiscard]] analysis::Rgb color_of_value(const analysis::ColorScale& scale, double value, analysis::Rgb ground);

/// Returns the map's pixels. Cells in one pixel are reduced to one. Pixels outside the grid have the color `ground`.
[[nodiscard]] Raster rasterize_map(const analysis::HeatMap& map, const analysis::ColorScale& scale,
                                   const Window& columns, const Window& rows, size_t width, size_t height,
                                   analysis::Rgb ground);
[[nodiscard]] Raster rasterize_map(const analysis::Categories& map, const Window& columns, const Window& rows,
                                   size_t width, size_t height, analysis::Rgb ground);

}  // namespace kvscope::figures
