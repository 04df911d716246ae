#include "analysis/layer_axis.h"

#include <string>

namespace kvscope::analysis {

Axis layer_axis(const std::vector<int>& layers) {
    Axis axis;
    axis.title = "Layer";
    axis.whole_numbers = true;
    axis.min = -0.5;
    axis.max = static_cast<double>(layers.size()) - 0.5;
    const bool plain = !layers.empty() && layers.front() == 0 && layers.back() == static_cast<int>(layers.size()) - 1;
    if (!plain) {
        for (size_t i = 0; i < layers.size(); ++i) {
            axis.ticks.push_back({static_cast<double>(i), std::to_string(layers[i])});
        }
    }
    return axis;
}

Rgb layer_color(size_t i, size_t n) {
    return color_at(ColorMap::viridis, n < 2 ? 0.0 : 0.85 * static_cast<double>(i) / static_cast<double>(n - 1));
}

}  // namespace kvscope::analysis
