#pragma once

#include "analysis/figure.h"
#include "app/figures/draw_figure.h"

namespace kvscope::figures {

/// Draws one shape of a panel whose data area is `data`; the caller clips to it.
void draw_shape(const Canvas& canvas, const analysis::Figure& figure, const analysis::Panel& panel, const Box& data,
                const analysis::Shape& shape);

}  // namespace kvscope::figures
