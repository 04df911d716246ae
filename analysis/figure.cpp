#include "analysis/figure.h"

#include <algorithm>

namespace kvscope::analysis {

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
