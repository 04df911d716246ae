#include "app/figures/heat_map_raster.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope::figures {
namespace {

using analysis::Rgb;

struct Span {
    size_t first = 0;
    size_t last = 0;
};

/// Returns the cells of each pixel: all cells that it touches, or one cell if cells are larger than pixels.
std::vector<Span> spans(const Window& window, size_t n_pixels, size_t n_cells) {
    constexpr double slack = 1e-6;  // share of a cell; prevents rounding from adding a neighbor
    std::vector<Span> result(n_pixels);
    const double per_pixel = (window.end - window.begin) / static_cast<double>(n_pixels);
    for (size_t p = 0; p < n_pixels; ++p) {
        double low = window.begin + per_pixel * static_cast<double>(p);
        double high = window.begin + per_pixel * static_cast<double>(p + 1);
        if (low > high) std::swap(low, high);
        if (std::fabs(per_pixel) <= 1) {
            low = std::floor((low + high) / 2);
            high = low + 1;
        }
        const auto limit = static_cast<double>(n_cells);
        result[p].first = static_cast<size_t>(std::clamp(std::floor(low + slack), 0.0, limit));
        result[p].last = static_cast<size_t>(std::clamp(std::ceil(high - slack), 0.0, limit));
    }
    return result;
}

float reduced(const analysis::HeatMap& map, Span rows, Span columns) {
    float largest = std::numeric_limits<float>::quiet_NaN();
    float smallest = largest;
    double sum = 0;
    size_t n = 0;
    for (size_t r = rows.first; r < rows.last; ++r) {
        for (size_t c = columns.first; c < columns.last; ++c) {
            const float value = map.values[r * map.columns + c];
            if (std::isnan(value)) continue;
            if (!(value <= largest)) largest = value;
            if (!(value >= smallest)) smallest = value;
            sum += static_cast<double>(value);
            ++n;
        }
    }
    if (n == 0 || map.reduction == analysis::Reduction::maximum) return largest;
    if (map.reduction == analysis::Reduction::magnitude) return largest >= -smallest ? largest : smallest;
    return static_cast<float>(sum / static_cast<double>(n));
}

uint8_t reduced(const analysis::Categories& map, Span rows, Span columns) {
    int highest = -1;
    for (size_t r = rows.first; r < rows.last; ++r) {
        for (size_t c = columns.first; c < columns.last; ++c) {
            const uint8_t id = map.ids[r * map.columns + c];
            if (id != analysis::Categories::none) highest = std::max(highest, static_cast<int>(id));
        }
    }
    return highest < 0 ? analysis::Categories::none : static_cast<uint8_t>(highest);
}

template <class Map, class Color>
Raster rasterize_with(const Map& map, const Window& columns, const Window& rows, size_t width, size_t height,
                      const Color& color) {
    Raster raster{width, height, std::vector<Rgb>(width * height)};
    const std::vector<Span> column_spans = spans(columns, width, map.columns);
    const std::vector<Span> row_spans = spans(rows, height, map.rows);
    for (size_t y = 0; y < height; ++y) {
        Rgb* line = raster.pixels.data() + y * width;
        if (y > 0 && row_spans[y].first == row_spans[y - 1].first && row_spans[y].last == row_spans[y - 1].last) {
            std::copy(line - width, line, line);
            continue;
        }
        for (size_t x = 0; x < width; ++x) line[x] = color(reduced(map, row_spans[y], column_spans[x]));
    }
    return raster;
}

}  // namespace

Window visible_window(const analysis::Axis& axis, double cells_begin, double cells_end, size_t n_cells,
                      bool downwards) {
    Window window;
    const double per_unit = static_cast<double>(n_cells) / (cells_end - cells_begin);
    window.begin = (axis.min - cells_begin) * per_unit;
    window.end = (axis.max - cells_begin) * per_unit;
    if (axis.reversed != downwards) std::swap(window.begin, window.end);
    const auto is_whole = [](double value) { return std::fabs(value - std::round(value)) < 1e-6; };
    if (is_whole(window.begin) && is_whole(window.end))
        window.whole_cells = static_cast<size_t>(std::llround(std::fabs(window.end - window.begin)));
    return window;
}

size_t raster_side(const Window& window, size_t device_pixels, bool exact_pixels) {
    device_pixels = std::max<size_t>(device_pixels, 1);
    if (exact_pixels || window.whole_cells == 0 || window.whole_cells > device_pixels) return device_pixels;
    return window.whole_cells * ((device_pixels + window.whole_cells - 1) / window.whole_cells);
}

Rgb color_of_value(const analysis::ColorScale& scale, double value, Rgb ground) {
    if (std::isnan(value)) return ground;
    if (!scale.background_label.empty() && value < scale.min) return ground;
    return analysis::color_at(scale.map, analysis::position_on_scale(scale, value));
}

Raster rasterize_map(const analysis::HeatMap& map, const analysis::ColorScale& scale, const Window& columns,
                     const Window& rows, size_t width, size_t height, Rgb ground) {
    return rasterize_with(map, columns, rows, width, height,
                          [&](float value) { return color_of_value(scale, static_cast<double>(value), ground); });
}

Raster rasterize_map(const analysis::Categories& map, const Window& columns, const Window& rows, size_t width,
                     size_t height, Rgb ground) {
    return rasterize_with(map, columns, rows, width, height,
                          [&](uint8_t id) { return id < map.classes.size() ? map.classes[id].color : ground; });
}

}  // namespace kvscope::figures
