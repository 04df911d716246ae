#pragma once

#include "analysis/drawing/figure.h"
#include "app/figures/draw_figure.h"

namespace kvscope::figures {

/// Draws one shape of a panel. `data` is the panel's data area; the caller sets the clip region.
void draw_shape(const Canvas& canvas, const analysis::Figure& figure, const analysis::Panel& panel, const Box& data,
                const analysis::Shape& shape);

}  // namespace kvscope::figures
