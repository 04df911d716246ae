#include <catch2/catch.hpp>
#include <cmath>

#include "app/figures/heat_map_raster.h"

using namespace kvscope::figures;
using namespace kvscope::analysis;

namespace {

constexpr Rgb ground_color{255, 255, 255};

HeatMap ramp(size_t rows, size_t columns) {
    HeatMap map;
    map.rows = rows;
    map.columns = columns;
    for (size_t i = 0; i < rows * columns; ++i) map.values.push_back(static_cast<float>(i));
    return map;
}

Axis axis(double min, double max, bool reversed = false) {
    Axis a;
    a.min = min;
    a.max = max;
    a.reversed = reversed;
    return a;
}

ColorScale scale(double max) {
    ColorScale s;
    s.map = ColorMap::viridis;
    s.max = max;
    return s;
}

Rgb colour(double value, double max) { return color_at(ColorMap::viridis, value / max); }

}  // namespace

TEST_CASE("the window of cells follows the axis and its direction") {
    const Window all = visible_window(axis(-0.5, 3.5), -0.5, 3.5, 4, false);
    CHECK(all.begin == 0);
    CHECK(all.end == 4);
    CHECK(all.whole_cells == 4);
    const Window up = visible_window(axis(0, 4), 0, 4, 4, true);
    CHECK(up.begin == 4);
    CHECK(up.end == 0);
    const Window down = visible_window(axis(0, 4, true), 0, 4, 4, true);
    CHECK(down.begin == 0);
    const Window part = visible_window(axis(1, 2.5), 0, 4, 4, false);
    CHECK(part.begin == 1);
    CHECK(part.end == 2.5);
    CHECK(part.whole_cells == 0);
}

TEST_CASE("rasters in vector files are multiples of the cells, bitmaps use device pixels") {
    const Window cells{0, 30, 30};
    CHECK(raster_side(cells, 200, false) == 210);
    CHECK(raster_side(cells, 200, true) == 200);
    CHECK(raster_side(cells, 30, false) == 30);
    CHECK(raster_side(cells, 20, false) == 20);
    CHECK(raster_side({0, 2.5, 0}, 20, false) == 20);
}

TEST_CASE("cells larger than pixels: each pixel shows the cell at its middle, in the right direction") {
    const HeatMap map = ramp(2, 2);
    const Raster up = rasterize_map(map, scale(3), visible_window(axis(0, 1), 0, 1, 2, false),
                                    visible_window(axis(0, 1), 0, 1, 2, true), 4, 2, ground_color);
    REQUIRE(up.pixels.size() == 8);
    CHECK(up.pixels[0] == colour(2, 3));  // the top left is row 1, column 0
    CHECK(up.pixels[1] == colour(2, 3));
    CHECK(up.pixels[3] == colour(3, 3));
    CHECK(up.pixels[4] == colour(0, 3));
    const Raster down = rasterize_map(map, scale(3), visible_window(axis(0, 1), 0, 1, 2, false),
                                      visible_window(axis(0, 1, true), 0, 1, 2, true), 4, 2, ground_color);
    CHECK(down.pixels[0] == colour(0, 3));
    CHECK(down.pixels[7] == colour(3, 3));
}

TEST_CASE("cells smaller than pixels: each pixel shows the maximum or the mean of the cells it touches") {
    HeatMap map = ramp(1, 9);
    const Window columns = visible_window(axis(0, 9), 0, 9, 9, false);
    const Window rows{0, 1, 1};
    map.x_end = 9;
    Raster raster = rasterize_map(map, scale(8), columns, rows, 3, 1, ground_color);
    CHECK(raster.pixels == std::vector<Rgb>{colour(2, 8), colour(5, 8), colour(8, 8)});
    map.reduction = Reduction::mean;
    raster = rasterize_map(map, scale(8), columns, rows, 3, 1, ground_color);
    CHECK(raster.pixels == std::vector<Rgb>{colour(1, 8), colour(4, 8), colour(7, 8)});
    // Two pixels share the middle cell.
    map.reduction = Reduction::maximum;
    raster = rasterize_map(map, scale(8), columns, rows, 2, 1, ground_color);
    CHECK(raster.pixels == std::vector<Rgb>{colour(4, 8), colour(8, 8)});
}

TEST_CASE("differences smaller than pixels: each pixel shows the value farthest from zero") {
    HeatMap map;
    map.rows = 1;
    map.columns = 8;
    map.values = {0, -3, 2, 0, 1, -1, 0, 0};
    map.x_end = 8;
    map.reduction = Reduction::magnitude;
    ColorScale differences = scale(3);
    differences.map = ColorMap::blue_white_red;
    differences.min = -3;
    const Raster raster = rasterize_map(map, differences, visible_window(axis(0, 8), 0, 8, 8, false), Window{0, 1, 1},
                                        4, 1, ground_color);
    const auto of = [&](double value) { return color_of_value(differences, value, ground_color); };
    CHECK(raster.pixels == std::vector<Rgb>{of(-3), of(2), of(1), of(0)});
}

TEST_CASE("a single kept token is visible at every position") {
    HeatMap map;
    map.rows = 1;
    map.columns = 100000;
    for (const size_t token : {size_t{0}, size_t{1}, size_t{33333}, size_t{50000}, size_t{77776}, size_t{99999}}) {
        map.values.assign(map.columns, 0.0F);
        map.values[token] = 1;
        ColorScale s = scale(1);
        s.min = 1;
        s.background_label = "none";
        const Raster raster = rasterize_map(map, s, {0, 1e5, 100000}, {0, 1, 1}, 1771, 1, ground_color);
        const auto n =
            std::count_if(raster.pixels.begin(), raster.pixels.end(), [](Rgb c) { return c != ground_color; });
        CHECK(n >= 1);
        CHECK(n <= 2);
        CHECK(raster.pixels[token * 1771 / 100000] != ground_color);
    }
}

TEST_CASE("unknown values and places outside the map are background") {
    HeatMap map = ramp(1, 2);
    map.values[1] = NAN;
    const Raster raster =
        rasterize_map(map, scale(1), visible_window(axis(-1, 2), 0, 1, 2, false), {0, 1, 1}, 6, 1, ground_color);
    CHECK(raster.pixels ==
          std::vector<Rgb>{ground_color, ground_color, colour(0, 1), ground_color, ground_color, ground_color});
}

TEST_CASE("a pixel shows the highest of its classes") {
    Categories map;
    map.rows = 1;
    map.columns = 4;
    map.ids = {0, 1, Categories::none, Categories::none};
    map.classes = {{"evicted", {1, 1, 1}}, {"kept", {2, 2, 2}}};
    const Raster raster = rasterize_map(map, {0, 4, 4}, {0, 1, 1}, 2, 1, ground_color);
    CHECK(raster.pixels == std::vector<Rgb>{{2, 2, 2}, ground_color});
}

TEST_CASE("colors of scales: ends, background, part of a map, logarithms") {
    ColorScale s = scale(4);
    s.min = 2;
    CHECK(color_of_value(s, 1, ground_color) == color_at(ColorMap::viridis, 0));
    CHECK(color_of_value(s, 3, ground_color) == color_at(ColorMap::viridis, 0.5));
    CHECK(color_of_value(s, 9, ground_color) == color_at(ColorMap::viridis, 1));
    CHECK(color_of_value(s, NAN, ground_color) == ground_color);
    s.background_label = "none";
    CHECK(color_of_value(s, 1, ground_color) == ground_color);
    s.map_begin = 0.2;
    CHECK(color_of_value(s, 2, ground_color) == color_at(ColorMap::viridis, 0.2));
    s.min = s.max = 1;
    CHECK(color_of_value(s, 1, ground_color) == color_at(ColorMap::viridis, 1));
    ColorScale log = scale(100);
    log.min = 1;
    log.scale = Scale::logarithmic;
    CHECK(color_of_value(log, 10, ground_color) == color_at(ColorMap::viridis, 0.5));
    CHECK(color_of_value(log, 0, ground_color) == color_at(ColorMap::viridis, 0));
}
