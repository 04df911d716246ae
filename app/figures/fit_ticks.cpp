#include "app/figures/fit_ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/tables/table_format.h"
#include "app/figures/layout.h"

namespace kvscope::figures {
namespace {

using analysis::Axis;
using analysis::Ticks;

constexpr double label_gap_pt = 4;

size_t most_ticks(double length_pt, Direction direction) {
    const double n = direction == Direction::horizontal ? std::min(length_pt / 8, 5 + length_pt / 60)
                                                        : std::min(length_pt / 10.5, 3 + length_pt / 30);
    return static_cast<size_t>(std::clamp(n, 2.0, 12.0));
}

bool have_room(const Axis& axis, const Ticks& ticks, double length_pt, Direction direction) {
    for (size_t i = 1; i < ticks.ticks.size(); ++i) {
        const double distance =
            std::fabs(position_on_axis(axis, ticks.ticks[i].value) - position_on_axis(axis, ticks.ticks[i - 1].value)) *
            length_pt;
        const TextSize a = measure_text(ticks.ticks[i - 1].label, tick_text_style());
        const TextSize b = measure_text(ticks.ticks[i].label, tick_text_style());
        const double needed = direction == Direction::horizontal ? (a.width + b.width) / 2 + label_gap_pt
                                                                 : (a.height + b.height) / 2 * 0.95;
        if (distance < needed) return false;
    }
    return true;
}

Ticks thinned(const Axis& axis, double length_pt, Direction direction) {
    Ticks ticks;
    for (size_t stride = 1; stride <= axis.ticks.size(); ++stride) {
        ticks.ticks.clear();
        for (size_t i = 0; i < axis.ticks.size(); i += stride) ticks.ticks.push_back(axis.ticks[i]);
        if (have_room(axis, ticks, length_pt, direction)) break;
    }
    return ticks;
}

Ticks ends_of(const Axis& axis) {
    Ticks ticks;
    if (!axis.whole_numbers || axis.scale != analysis::Scale::linear) return ticks;
    const double first = std::ceil(axis.min), last = std::floor(axis.max);
    if (first >= last || std::max(std::fabs(first), std::fabs(last)) >= 1e7) return ticks;
    for (const double value : {first, last})
        ticks.ticks.push_back({value, analysis::format_count(std::llround(value))});
    return ticks;
}

/// Adds a tick at the largest value of a logarithmic scale, which may exceed the last power of ten by far.
void name_largest(const Axis& axis, Ticks& ticks, double length_pt) {
    constexpr double nearly_the_end = 0.995;
    if (ticks.ticks.empty() || position_on_axis(axis, ticks.ticks.back().value) > nearly_the_end) return;
    ticks.ticks.push_back({axis.max, fmt::format("{:.3g}", axis.max)});
    if (!have_room(axis, ticks, length_pt, Direction::horizontal) && ticks.ticks.size() > 2)
        ticks.ticks.erase(ticks.ticks.end() - 2);
}

}  // namespace

double position_on_axis(const Axis& axis, double value) {
    double share = (value - axis.min) / (axis.max - axis.min);
    if (axis.scale == analysis::Scale::logarithmic) share = std::log(value / axis.min) / std::log(axis.max / axis.min);
    return axis.reversed ? 1 - share : share;
}

Ticks fit_ticks(const Axis& axis, double length_pt, Direction direction) {
    if (!axis.ticks.empty()) return thinned(axis, length_pt, direction);
    Ticks ticks;
    for (size_t n = most_ticks(length_pt, direction); n >= 2; --n) {
        ticks = analysis::ticks_for(axis, n);
        if (have_room(axis, ticks, length_pt, direction)) return ticks;
    }
    if (Ticks ends = ends_of(axis); have_room(axis, ends, length_pt, direction) && ends.ticks.size() > 1) return ends;
    if (ticks.ticks.size() > 1) ticks.ticks.resize(1);
    return ticks;
}

Ticks color_bar_ticks(const analysis::ColorScale& scale, double length_pt) {
    if (const size_t n = count_color_patches(scale); n > 0) {
        Ticks ticks;
        const size_t n_ground = scale.background_label.empty() ? 0 : 1;
        for (size_t i = 0; i < n; ++i) {
            const auto value = static_cast<int64_t>(std::llround(scale.min)) + static_cast<int64_t>(i) -
                               static_cast<int64_t>(n_ground);
            ticks.ticks.push_back({(static_cast<double>(i) + 0.5) / static_cast<double>(n),
                                   i < n_ground ? scale.background_label : std::to_string(value)});
        }
        return ticks;
    }
    Axis axis;
    axis.min = scale.min;
    axis.max = scale.max > scale.min ? scale.max : scale.min + 1;
    axis.scale = scale.scale;
    axis.whole_numbers = scale.whole_numbers;
    Ticks ticks = fit_ticks(axis, length_pt, Direction::horizontal);
    if (axis.scale == analysis::Scale::logarithmic) name_largest(axis, ticks, length_pt);
    for (auto& tick : ticks.ticks) tick.value = position_on_axis(axis, tick.value);
    return ticks;
}

}  // namespace kvscope::figures
