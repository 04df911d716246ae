#pragma once

#include "analysis/figure.h"
#include "app/figures/draw_figure.h"

namespace kvscope::figures {

/// Draws one layer of a panel whose data area is `data`; the caller clips to it.
void draw_layer(const Canvas& canvas, const analysis::Figure& figure, const analysis::Panel& panel, const Box& data,
                const analysis::Layer& layer);

}  // namespace kvscope::figures
