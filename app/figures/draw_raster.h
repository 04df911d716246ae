#pragma once

#include <functional>

#include "app/figures/draw_figure.h"
#include "app/figures/heat_map_raster.h"

namespace kvscope::figures {

/// Fills `box` with the colors from `make`. Small maps in vector files are rectangles, other maps an unsmoothed image.
void draw_raster(const Canvas& canvas, const Box& box, const Window& columns, const Window& rows,
                 const std::function<Raster(size_t width, size_t height)>& make);

void draw_image(const Canvas& canvas, const Box& box, const Raster& raster);

}  // namespace kvscope::figures
