#include <catch2/catch.hpp>

#include "app/figures/figure_format.h"
#include "app/figures/heat_map_raster.h"
#include "tests/figures/picture.h"

using namespace kvscope::figures;
using namespace kvscope::analysis;

namespace {

constexpr Rgb white{255, 255, 255};

/// Pango's glyphs may differ between machines; the cells of a map may not.
Rgb colour_of(const Figure& figure, double value) { return color_of_value(figure.color_scales[0], value, white); }

}  // namespace

TEST_CASE("PNG: cells have the colors of their values, rows start at the top, and empty cells are background") {
    Figure figure = test::map_figure(3, 4, 3);
    auto& values = test::map_of(figure).values;
    values = {0, 1, 2, 3,  //
              3, 0, 0, 0,  //
              0, 0, 0, 1};
    const test::Picture picture(figure);
    for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 4; ++column) {
            CAPTURE(row, column);
            CHECK(picture.in_panel((column + 0.5) / 4, (row + 0.5) / 3) ==
                  colour_of(figure, static_cast<double>(values[static_cast<size_t>(row * 4 + column)])));
            CHECK(picture.in_panel((column + 0.1) / 4, (row + 0.1) / 3) ==
                  colour_of(figure, static_cast<double>(values[static_cast<size_t>(row * 4 + column)])));
        }
    }
    CHECK(colour_of(figure, 0) == white);
    CHECK_FALSE(colour_of(figure, 1) == colour_of(figure, 2));
}

TEST_CASE("PNG: one kept token of 100,000 is visible, only at its place") {
    Figure figure = test::map_figure(32, 100000, 8);
    const size_t token = GENERATE(as<size_t>(), 0, 4711, 50001, 99999);
    test::map_of(figure).values[17 * 100000 + token] = 1;
    const double dpi = GENERATE(72.0, 300.0);
    const test::Picture picture(figure, dpi);
    CAPTURE(token, dpi);
    const int n = [&] {
        int seen = 0;
        const Box& data = picture.layout().panels[0].data;
        const double middle = data.y + data.height * 17.5 / 32;
        const double per_point = picture.width() / picture.layout().width;
        for (int x = static_cast<int>(data.x * per_point) - 1; x < static_cast<int>(data.right() * per_point) + 1;
             ++x) {
            seen += picture.pixel(x, static_cast<int>(middle * per_point)) == colour_of(figure, 1) ? 1 : 0;
        }
        return seen;
    }();
    CHECK(n >= 1);
    CHECK(n <= 2);
}

TEST_CASE("PNG: the color bar shows each color of the map and its background") {
    const Figure figure = test::map_figure(2, 2, 3);
    const test::Picture picture(figure);
    const Box& bar = picture.layout().color_bars.at(0).bar;
    CHECK(picture.at(bar, 0.5 / 4, 0.5) == white);
    for (int i = 1; i < 4; ++i) CHECK(picture.at(bar, (i + 0.5) / 4, 0.5) == colour_of(figure, i));
}

TEST_CASE("PNG: curves, bars and markers have their colors at their places") {
    Figure figure;
    figure.name = "curves";
    figure.width_mm = 84;
    figure.panel_height_mm = 40;
    Panel panel;
    panel.x.max = panel.y.max = 10;
    Line line;
    line.x = {0, 10};
    line.y = {2, 2};
    line.style = {okabe_ito()[0], Dash::solid, Marker::none, 2.0};
    Bars bars;
    bars.x = {2};
    bars.y = {9};
    bars.width = 2;
    bars.color = okabe_ito()[1];
    Scatter scatter;
    scatter.x = {7};
    scatter.y = {7};
    scatter.size_pt = 6;
    scatter.color = okabe_ito()[2];
    panel.shapes = {bars, line, scatter};
    figure.panels.push_back(panel);
    figure.legend.push_back({"line", LegendEntry::Symbol::line, line.style});
    const test::Picture picture(figure);
    CHECK(picture.in_panel(0.5, 0.8) == okabe_ito()[0]);
    CHECK(picture.in_panel(0.2, 0.5) == okabe_ito()[1]);
    CHECK(picture.in_panel(0.2, 0.05) == white);
    CHECK(picture.in_panel(0.7, 0.3) == okabe_ito()[2]);
    CHECK(picture.in_panel(0.45, 0.5) == white);
    const Box symbol{picture.layout().legend.box.x, picture.layout().legend.box.y, legend_symbol_pt,
                     picture.layout().legend.line_height};
    CHECK(picture.at(symbol, 0.3, 0.5) == okabe_ito()[0]);
}

TEST_CASE("PNG: size, resolution and recipe are in the file") {
    const Figure figure = test::map_figure(2, 2, 3);
    const test::Picture picture(figure, 200);
    CHECK(picture.width() == static_cast<int>(std::ceil(120 / 25.4 * 200)));
    CHECK(picture.bytes().find("pHYs") != std::string::npos);
    CHECK(picture.bytes().find("What is shown.\nModel: tiny <1 & 2>\nRun: snapkv") != std::string::npos);
    ExportOptions options;
    options.dpi = 5;
    CHECK_THROWS_AS(render_png(figure, options), FormatError);
    options.dpi = 2400;
    Figure large = figure;
    large.width_mm = 1000;
    CHECK_THROWS_WITH(render_png(large, options), Catch::Matchers::Contains("32767"));
}

TEST_CASE("PNG: the same figure gives the same file") {
    const Figure figure = test::map_figure(3, 50, 3);
    CHECK(render_png(figure, {}) == render_png(figure, {}));
}
