#include "app/gui/drawing/pyramid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace kvscope::gui {
namespace {

constexpr size_t smallest_level = 64;

template <class Combine>
std::vector<float> halved(const std::vector<float>& in, size_t rows, size_t columns, Combine combine) {
    const size_t half = (columns + 1) / 2;
    std::vector<float> out(rows * half);
    for (size_t row = 0; row < rows; ++row) {
        const float* from = in.data() + row * columns;
        float* to = out.data() + row * half;
        for (size_t i = 0; i < columns / 2; ++i) to[i] = combine(from[2 * i], from[2 * i + 1]);
        if (columns % 2 != 0) to[half - 1] = from[columns - 1];
    }
    return out;
}

}  // namespace

float combine_cells(Reduce reduce, float a, float b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (reduce == Reduce::maximum) return std::max(a, b);
    return std::abs(b) > std::abs(a) ? b : a;
}

Pyramid make_pyramid(std::vector<float> values, size_t rows, size_t columns, Reduce reduce) {
    if (values.size() != rows * columns) {
        throw std::invalid_argument(fmt::format("a map of {} x {} cells needs one value per cell, found {} values",
                                                rows, columns, values.size()));
    }
    Pyramid pyramid{rows, reduce, {}};
    pyramid.levels.push_back({columns, std::move(values)});
    while (pyramid.levels.back().columns > smallest_level) {
        const auto& last = pyramid.levels.back();
        auto next = reduce == Reduce::maximum
                        // like combine_cells(), fmax ignores a single NaN
                        ? halved(last.values, rows, last.columns, [](float a, float b) { return std::fmax(a, b); })
                        : halved(last.values, rows, last.columns,
                                 [](float a, float b) { return combine_cells(Reduce::largest_magnitude, a, b); });
        pyramid.levels.push_back({(last.columns + 1) / 2, std::move(next)});
    }
    return pyramid;
}

}  // namespace kvscope::gui
