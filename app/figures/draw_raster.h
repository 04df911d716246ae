#pragma once

#include <functional>

#include "app/figures/draw_figure.h"
#include "app/figures/raster.h"

namespace kvscope::figures {

/// Fills `box` with the colors that `make` returns for a number of pixels. In vector files, a map of few cells becomes
/// rectangles, and any other map becomes an image that viewers must not smooth.
void draw_raster(const Canvas& canvas, const Box& box, const Window& columns, const Window& rows,
                 const std::function<Raster(size_t width, size_t height)>& make);

/// Draws an image that exactly fills the box.
void draw_image(const Canvas& canvas, const Box& box, const Raster& raster);

}  // namespace kvscope::figures
