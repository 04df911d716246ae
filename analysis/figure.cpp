#include "analysis/figure.h"

#include <algorithm>
#include <cmath>

namespace kvscope::analysis {

double place_on(const ColorScale& scale, double value) {
    double share = 1;
    if (scale.scale == Scale::logarithmic && scale.min > 0) {
        share = value > 0 ? std::log(value / scale.min) / std::log(scale.max / scale.min) : 0;
    } else if (scale.max > scale.min) {
        share = (value - scale.min) / (scale.max - scale.min);
    }
    return scale.map_begin + std::clamp(share, 0.0, 1.0) * (scale.map_end - scale.map_begin);
}

void begin_at(ColorScale& scale, double least) {
    if (least >= scale.min) return;
    scale.min = least * (1 - 1e-6);  // maps hold f32, and what is below is drawn as background
    scale.scale = Scale::logarithmic;
    scale.whole_numbers = false;
}

std::vector<Figure> pages_of(Figure figure) {
    std::vector<Panel> panels = std::move(figure.panels);
    figure.panels.clear();
    size_t last = 0;
    for (const Panel& panel : panels) last = std::max(last, panel.page);
    std::vector<Figure> pages(last + 1, figure);
    for (Panel& panel : panels) {
        Figure& page = pages[panel.page];
        panel.page = 0;
        page.panels.push_back(std::move(panel));
    }
    return pages;
}

}  // namespace kvscope::analysis
