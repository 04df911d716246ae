#include "app/figures/layout.h"

#include <catch2/catch.hpp>
#include <utility>

#include "app/figures/fit_ticks.h"
#include "tests/figures/picture.h"

using namespace kvscope::figures;
using namespace kvscope::analysis;

namespace {

bool apart(const Box& a, const Box& b) {
    return a.right() <= b.x || b.right() <= a.x || a.bottom() <= b.y || b.bottom() <= a.y;
}

bool inside(const Box& box, const FigureLayout& layout) {
    constexpr double slack = 0.01;
    return box.x >= -slack && box.y >= -slack && box.right() <= layout.width + slack &&
           box.bottom() <= layout.height + slack;
}

Box text_box(const std::string& text, double center_x, double top) {
    const TextSize size = measure_text(text, tick_text_style());
    return {center_x - size.width / 2, top, size.width, size.height};
}

/// Returns every box with text or data.
std::vector<Box> boxes(const Figure& figure, const FigureLayout& layout) {
    std::vector<Box> all;
    for (size_t i = 0; i < figure.panels.size(); ++i) {
        const PanelPlace& place = layout.panels[i];
        all.push_back(place.data);
        for (const Tick& tick : place.x_ticks.ticks) {
            if (!place.x_labels) break;
            const double x = place.data.x + position_on_axis(figure.panels[i].x, tick.value) * place.data.width;
            all.push_back(text_box(tick.label, x, place.data.bottom() + 3));
        }
        for (const Tick& tick : place.y_ticks.ticks) {
            if (!place.y_labels) break;
            const TextSize size = measure_text(tick.label, tick_text_style());
            const double y = place.data.bottom() - position_on_axis(figure.panels[i].y, tick.value) * place.data.height;
            // Digits are lower than the line height.
            all.push_back({place.data.x - 3 - size.width, y - size.height * 0.3, size.width, size.height * 0.6});
        }
    }
    for (const ColorBarPlace& bar : layout.color_bars) {
        all.push_back(bar.bar);
        all.push_back(bar.title_box);
        for (const Tick& tick : bar.ticks.ticks) {
            all.push_back(text_box(tick.label, bar.bar.x + tick.value * bar.bar.width, bar.bar.bottom() + 2.2));
        }
    }
    if (layout.legend.box.width > 0) all.push_back(layout.legend.box);
    return all;
}

Figure grid_figure(size_t rows, size_t columns, size_t n_panels, bool square) {
    Figure figure = test::map_figure(30, 2000, 3);
    if (square) {
        figure = test::map_figure(32, 32, 3);
        figure.panels[0].square_cells = true;
    }
    const Panel panel = figure.panels[0];
    figure.panels.clear();
    for (size_t i = 0; i < n_panels; ++i) {
        figure.panels.push_back(panel);
        figure.panels.back().row = i / columns;
        figure.panels.back().column = i % columns;
    }
    figure.rows = rows;
    figure.columns = columns;
    figure.width_mm = 174;
    figure.panel_height_mm = 15;
    figure.shared_x = figure.shared_y = true;
    return figure;
}

}  // namespace

TEST_CASE("no elements overlap or leave the page") {
    std::vector<Figure> figures;
    figures.push_back(test::map_figure(1, 5, 1));
    figures.push_back(test::map_figure(80, 128000, 8));
    figures.push_back(test::map_figure(30, 2000, 30));
    figures.push_back(grid_figure(7, 2, 14, false));
    figures.push_back(grid_figure(4, 8, 30, true));
    figures.push_back(grid_figure(8, 10, 80, true));
    figures.back().panel_height_mm = 40;
    Figure legend = test::map_figure(3, 9, 3);
    for (int i = 0; i < 15; ++i)
        legend.legend.push_back({"ada-pyramidkv " + std::to_string(i), LegendEntry::Symbol::line, {}});
    figures.push_back(legend);
    Figure untitled = test::map_figure(30, 2000, 3);
    Panel& bare = untitled.panels[0];
    bare.title = bare.note = "";
    bare.y.ticks = {{bare.y.min, "10"}, {bare.y.max, "0"}};  // at the ends of the axis
    figures.push_back(untitled);
    for (Figure narrow : std::vector<Figure>(figures.begin(), figures.begin() + 3)) {
        narrow.width_mm = 60;
        figures.push_back(narrow);
    }
    for (Figure& figure : figures) {
        figure.color_scales[0].title = "KV heads that keep the token in question";
        const FigureLayout layout = lay_out(figure);
        const std::vector<Box> all = boxes(figure, layout);
        for (size_t i = 0; i < all.size(); ++i) {
            CAPTURE(figure.columns, figure.rows, figure.width_mm, i, all[i].x, all[i].y, all[i].width, all[i].height,
                    layout.width, layout.height);
            CHECK(inside(all[i], layout));
            for (size_t j = 0; j < i; ++j) {
                CAPTURE(j, all[j].x, all[j].y, all[j].width, all[j].height);
                CHECK(apart(all[i], all[j]));
            }
        }
    }
}

TEST_CASE("panels of a row and a column line up") {
    const FigureLayout layout = lay_out(grid_figure(4, 8, 30, true));
    for (size_t i = 0; i < 30; ++i) {
        CHECK(layout.panels[i].data.x == layout.panels[i % 8].data.x);
        CHECK(layout.panels[i].data.y == layout.panels[i / 8 * 8].data.y);
        CHECK(layout.panels[i].data.width == Approx(layout.panels[i].data.height));
        CHECK(layout.panels[i].y_labels == (i % 8 == 0));
        CHECK(layout.panels[i].x_labels == (i >= 22));
    }
}

TEST_CASE("two stacked traces each have a heading and labels") {
    Figure figure = grid_figure(4, 8, 32, true);
    figure.trace_by_trace = true;
    for (size_t i = 0; i < 32; ++i) {
        Panel& panel = figure.panels[i];
        panel.trace_name = i < 16 ? "one" : "two";
        if (i < 16) continue;
        panel.x.min += 1000;
        panel.x.max += 1000;
    }
    const FigureLayout layout = lay_out(figure);
    REQUIRE(layout.headings.size() == 2);
    const double line = measure_text("Ag0", figure_title_style()).height;
    for (size_t trace = 0; trace < 2; ++trace) {
        const PanelPlace& first = layout.panels[16 * trace];
        CHECK(layout.headings[trace].text == (trace == 0 ? "one" : "two"));
        CHECK(layout.headings[trace].x == first.data.x);
        CHECK(layout.headings[trace].y + line + measure_text("Ag0", panel_title_style()).height < first.data.y);
    }
    const double labels = measure_text("1,000", tick_text_style()).height;
    CHECK(layout.panels[8].data.bottom() + labels < layout.headings[1].y);
    for (size_t i = 0; i < 32; ++i) CHECK(layout.panels[i].x_labels == (i / 8 % 2 == 1));
}

TEST_CASE("a requested height is used") {
    Figure figure = test::map_figure(30, 2000, 3);
    figure.height_mm = 90;
    const FigureLayout layout = lay_out(figure);
    CHECK(layout.height == Approx(90 * points_per_mm));
    CHECK(layout.panels[0].data.height > 60 * points_per_mm);
}

TEST_CASE("a figure that is too small or inconsistent is refused by name") {
    using Catch::Matchers::Contains;
    Figure figure = test::map_figure(3, 3, 3);
    figure.height_mm = 5;
    CHECK_THROWS_WITH(lay_out(figure), Contains("enlarge the figure"));
    figure = grid_figure(1, 80, 80, false);
    CHECK_THROWS_AS(lay_out(figure), LayoutError);
    figure = test::map_figure(3, 3, 3);
    figure.width_mm = 0;
    CHECK_THROWS_AS(lay_out(figure), LayoutError);
    figure = test::map_figure(3, 3, 3);
    test::map_of(figure).values.pop_back();
    CHECK_THROWS_WITH(lay_out(figure), Contains("8 values"));
    figure = test::map_figure(3, 3, 3);
    test::map_of(figure).color_scale = 1;
    CHECK_THROWS_WITH(lay_out(figure), Contains("color scale 1"));
    figure = test::map_figure(3, 3, 3);
    figure.panels[0].x.max = figure.panels[0].x.min;
    CHECK_THROWS_WITH(lay_out(figure), Contains("Token position"));
    figure = test::map_figure(3, 3, 3);
    figure.panels[0].column = 1;
    CHECK_THROWS_AS(lay_out(figure), LayoutError);
    figure = test::map_figure(3, 3, 3);
    figure.panels.clear();
    CHECK_THROWS_AS(lay_out(figure), LayoutError);
}

TEST_CASE("text is cut at whole characters") {
    const TextStyle style = tick_text_style();
    CHECK(fit_text("snapkv 128", style, 1000) == "snapkv 128");
    const std::string text = "\u00e9t\u00e9 \u4e2d\u6587 \U0001f600 long enough";
    for (double width = 0; width < 120; width += 3) {
        const std::string cut = fit_text(text, style, width);
        CHECK(measure_text(cut, style).width <= width + 0.01);
        if (cut.empty() || cut == text) continue;
        const std::string head = cut.substr(0, cut.size() - std::string("\u2026").size());
        CHECK(text.compare(0, head.size(), head) == 0);
        CHECK((static_cast<unsigned char>(text[head.size()]) & 0xC0) != 0x80);
    }
}

TEST_CASE("each heading of a legend begins a line") {
    using Symbol = LegendEntry::Symbol;
    Figure figure = test::map_figure(3, 9, 3);
    for (const char* trace : {"demo:", "other:"}) {
        figure.legend.push_back({trace, Symbol::none, {}});
        for (const char* run : {"snapkv @ 64", "h2o @ 64", "k-vec @ 64"})
            figure.legend.push_back({run, Symbol::line, {}});
    }
    for (const double width : {60.0, 84.0, 174.0}) {
        figure.width_mm = width;
        const auto cells = lay_out(figure).legend.cells;
        REQUIRE(cells.size() == figure.legend.size());
        for (size_t i = 0; i < cells.size(); ++i) {
            CAPTURE(width, i, cells[i].column, cells[i].line);
            if (figure.legend[i].symbol == Symbol::none) CHECK(cells[i].column == 0);
            if (i > 0)
                CHECK(std::pair(cells[i - 1].line, cells[i - 1].column) < std::pair(cells[i].line, cells[i].column));
        }
        CHECK(cells[4].line > cells[3].line);
    }
}
