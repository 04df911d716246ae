#include "app/gui/drawing/pan_limits.h"

#include <implot_internal.h>

#include <cmath>

namespace kvscope::gui {

std::pair<double, double> move_range_within_limits(double min, double max, double low, double high,
                                                   bool is_logarithmic) {
    if (is_logarithmic) {
        const auto [from, to] = move_range_within_limits(std::log(min), std::log(max), std::log(low), std::log(high));
        // exp(log(limit)) may differ from the limit in the last bit.
        return {from <= std::log(low) ? low : std::exp(from), to >= std::log(high) ? high : std::exp(to)};
    }
    if (max - min >= high - low) return {low, high};
    if (min < low) return {low, low + (max - min)};
    if (max > high) return {high - (max - min), high};
    return {min, max};
}

void keep_axis_within_limits(ImAxis which, double low, double high, bool is_logarithmic) {
    ImPlotAxis& axis = ImPlot::GetCurrentPlot()->Axes[which];
    const auto [min, max] = move_range_within_limits(axis.Range.Min, axis.Range.Max, low, high, is_logarithmic);
    if (min != axis.Range.Min || max != axis.Range.Max) axis.SetRange(min, max);
}

}  // namespace kvscope::gui
