#pragma once

#include <functional>

#include "app/figures/draw_figure.h"
#include "app/figures/raster.h"

namespace kvscope::figures {

/// Fills `box` with colours made for a number of pixels. In vector files a map of few cells becomes rectangles, any
/// other one embedded image that no viewer is to interpolate.
void draw_raster(const Canvas& canvas, const Box& box, const Window& columns, const Window& rows,
                 const std::function<Raster(size_t width, size_t height)>& make);

/// One image, its pixels exactly over the box.
void draw_image(const Canvas& canvas, const Box& box, const Raster& raster);

}  // namespace kvscope::figures
