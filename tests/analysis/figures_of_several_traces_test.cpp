#include "analysis/figures_of_several_traces.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/analysis/two_traces.h"

using namespace kvscope::analysis;
using namespace kvscope::analysis::test;
using Catch::Matchers::Contains;
namespace trace = kvscope::trace;

TEST_CASE(
    "curves of several traces share a plot with each trace's own numbers, and the first trace looks as it does alone") {
    const TwoTraces two;
    FigureOptions options;
    options.runs = {"snapkv"};
    const Figure joint = make_figure(figure_definition("coverage"), two.parts(options));
    const Figure alone = made(two.first.reader(), "coverage", options);
    const Figure other = made(two.second.reader(), "coverage", options);
    REQUIRE(joint.panels.size() == 2);
    REQUIRE(joint.panels[0].shapes.size() == 4);
    for (size_t i = 0; i < 4; ++i) {
        const auto& curve = layer_of<Line>(joint, 0, i);
        const auto& expected = layer_of<Line>(i < 2 ? alone : other, 0, i % 2);
        CHECK(curve.label == (i < 2 ? "one.h5: " : "two.h5: ") + expected.label);
        CHECK(curve.y == expected.y);
        CHECK((curve.style.color == expected.style.color) == (i < 2));
        CHECK(curve.style.dash == expected.style.dash);
        CHECK(joint.panels[0].y.max >= *std::max_element(curve.y.begin(), curve.y.end()));
    }
    // Each run of the sample's snapkv has its own budget: lines join the points of one trace, not of two.
    CHECK(joint.panels[1].shapes.size() == 2 + 4);
}

TEST_CASE("maps of several traces are side by side on one scale") {
    const TwoTraces two;
    const auto parts = two.parts();
    const Figure joint = make_figure(figure_definition("jsd"), parts);
    REQUIRE(joint.panels.size() == 6);
    REQUIRE(joint.color_scales.size() == 1);
    double largest = 0;
    for (size_t i = 0; i < 6; ++i) {
        const Figure alone = made(*parts[i / 3].reader, "jsd", {});
        CHECK(layer_of<HeatMap>(joint, i).values == layer_of<HeatMap>(alone, i % 3).values);
        CHECK(joint.panels[i].subject.trace == i / 3);
        CHECK(joint.panels[i].column == i);
        CHECK_THAT(joint.panels[i].title, Catch::StartsWith(i < 3 ? "one.h5: " : "two.h5: "));
        largest = std::max(largest, alone.color_scales[0].max);
    }
    CHECK(joint.color_scales[0].max == largest);
    CHECK(made(two.first.reader(), "jsd", {}).color_scales[0].max !=
          made(two.second.reader(), "jsd", {}).color_scales[0].max);
    const auto each = make_figures_on_one_scale(parts, figure_definition("jsd").make);
    CHECK(each[0].figure->color_scales[0].max == largest);
    CHECK(each[1].figure->color_scales[0].max == largest);

    const Table numbers = make_numbers(figure_definition("jsd"), parts);
    CHECK(numbers.columns.front().name == "trace");
    CHECK(std::get<kvscope::SharedText>(numbers.rows.front().cells.front()).string() == "one.h5");
    CHECK(std::get<kvscope::SharedText>(numbers.rows.back().cells.front()).string() == "two.h5");
}

TEST_CASE("maps that do not fit side by side are arranged by trace") {
    const TwoTraces two;
    FigureOptions options;
    const auto beside = make_figure(figure_definition("query-similarity"), two.parts(options));
    CHECK(beside.columns == 8);
    CHECK_FALSE(beside.trace_by_trace);
    options.width_mm = 84;
    const Figure below = make_figure(figure_definition("query-similarity"), two.parts(options));
    CHECK(below.trace_by_trace);
    CHECK(below.width_mm == 84);
    CHECK(below.columns == 4);
    CHECK(below.rows == 6);
    CHECK(below.shared_x);
    CHECK(below.shared_y);
    REQUIRE(below.panels.size() == beside.panels.size());
    for (size_t i = 0; i < below.panels.size(); ++i) {
        CHECK(layer_of<HeatMap>(below, i).values == layer_of<HeatMap>(beside, i).values);
        CHECK(below.panels[i].row / 3 == below.panels[i].subject.trace);
        CHECK(below.panels[i].title == beside.panels[i].title);
    }
}

TEST_CASE("a trace without the data gives the reason, and the other trace is shown") {
    const SampleTrace whole_trace;
    const trace::sample::TemporaryFolder folder;
    {
        trace::Writer writer(folder / "bare.h5", "{}", {.force = true, .generator = "test"});
        const trace::sample::Options options;
        writer.write_model(trace::sample::model(options));
        trace::PromptRecord prompt = trace::sample::prompt(options);
        prompt.head_jsd.clear();
        writer.write_prompt(0, prompt);
        writer.write_run(0, 0, trace::sample::full_run(options, prompt));
        writer.finish();
    }
    const trace::Reader bare(folder / "bare.h5");
    const std::vector<TracePart> parts = {{&bare, {}, "bare.h5"}, {&whole_trace.reader(), {}, "t.h5"}};
    const auto each = make_figures_on_one_scale(parts, figure_definition("jsd").make);
    CHECK_FALSE(each[0].figure);
    CHECK_THAT(each[0].nothing, Contains("head_jsd"));
    CHECK(make_figure(figure_definition("jsd"), parts).panels.size() == 3);
    CHECK_THROWS_AS(make_figure(figure_definition("jsd"), {parts.data(), 1}), NothingToShow);
}

TEST_CASE("A − B is the difference of every cell on a scale around zero, also for runs of two traces") {
    const TwoTraces two;
    auto parts = two.parts();
    parts[0].options.runs = {"snapkv 24"};
    parts[1].options.runs = {"aperturekv 20"};
    const Figure difference = make_difference(figure_definition("budgets"), parts[0], parts[1]);
    const Figure a = made(two.first.reader(), "budgets", parts[0].options);
    const Figure b = made(two.second.reader(), "budgets", parts[1].options);
    REQUIRE(difference.panels.size() == 1);
    const auto& map = layer_of<HeatMap>(difference, 0);
    for (size_t i = 0; i < map.values.size(); ++i)
        CHECK(map.values[i] == layer_of<HeatMap>(a, 0).values[i] - layer_of<HeatMap>(b, 0).values[i]);
    const ColorScale& scale = difference.color_scales.at(0);
    CHECK(scale.map == ColorMap::blue_white_red);
    CHECK(scale.max == 4);  // every head of the sample keeps its budget
    CHECK(scale.min == -4);
    const Table numbers = difference_numbers(figure_definition("budgets"), parts[0], parts[1]);
    CHECK(numbers.rows.size() == map.values.size());
    CHECK(real(cell(numbers, 0, "a")) == 24);
    CHECK(real(cell(numbers, 0, "b")) == 20);
    CHECK(real(cell(numbers, 0, "difference")) == 4);
}

TEST_CASE("A − B of spectra is a ratio on a logarithmic axis, and different models have none") {
    const TwoTraces two;
    const auto parts = two.parts();
    const Figure ratio = make_difference(figure_definition("spectrum"), parts[0], parts[1]);
    for (const double y : layer_of<Line>(ratio, 0).y) CHECK((std::isnan(y) || y == 1));  // the same model
    CHECK(ratio.panels[0].y.scale == Scale::logarithmic);
    CHECK_THAT(ratio.panels[0].y.title, Catch::StartsWith("A ÷ B"));

    trace::sample::Options other;
    other.n_heads = other.n_kv_heads = 6;
    const SampleTrace more_heads(other);
    const TracePart unlike{&more_heads.reader(), {}, "other.h5"};
    CHECK_THROWS_WITH(make_difference(figure_definition("jsd"), parts[0], unlike),
                      Contains("Layer 0 has 2 × 2 cells in A and 6 × 6 in B"));
    other.n_layers = 5;
    const SampleTrace more_layers(other);
    const TracePart deeper{&more_layers.reader(), {}, "other.h5"};
    CHECK_THROWS_WITH(make_difference(figure_definition("jsd"), parts[0], deeper), Contains("has 3") && Contains("5"));
}

TEST_CASE("A − B of curves needs equal x where both have points") {
    const SampleTrace sample;
    FigureDefinition halves;
    halves.name = "halves";
    halves.make = [](const trace::Reader&, const FigureOptions& options) {
        Line line;
        line.x = {0, options.title ? 0.5 : 1.0};
        line.y = {3, 4};
        if (options.prompt == 1) line.x.push_back(2), line.y.push_back(5);
        Figure figure;
        figure.panels.resize(1);
        figure.panels[0].shapes.emplace_back(line);
        return figure;
    };
    const TracePart a{&sample.reader(), {}, "a"};
    TracePart b = a;
    b.options.prompt = 1;
    CHECK(layer_of<Line>(make_difference(halves, a, b), 0).y == std::vector<double>{0, 0});
    b.options.title = true;
    CHECK_THROWS_WITH(make_difference(halves, a, b), Contains("have different x in A and B"));
}

TEST_CASE("numbers on a map become the numbers of the difference") {
    const SampleTrace sample;
    FigureDefinition cells;
    cells.name = "cells";
    cells.make = [](const trace::Reader&, const FigureOptions& options) {
        HeatMap map;
        map.rows = map.columns = 1;
        map.values = {options.title ? 30.0f : 90.0f};
        Figure figure;
        figure.panels.resize(1);
        figure.color_scales.resize(1);
        figure.panels[0].shapes.emplace_back(map);
        figure.panels[0].shapes.emplace_back(TextLabel{0.5, 0.5, "90", {}});
        return figure;
    };
    const TracePart a{&sample.reader(), {}, "a"};
    TracePart b = a;
    b.options.title = true;
    CHECK(layer_of<TextLabel>(make_difference(cells, a, b), 0, 1).text == "+60");
}

TEST_CASE("letters that join across tokens have one color of the difference per token") {
    FigureDefinition words;
    words.name = "words";
    words.make = [](const trace::Reader&, const FigureOptions& options) {
        HeatMap map;
        map.rows = 1;
        map.columns = 2;
        map.values = options.title ? std::vector<float>{30, 0} : std::vector<float>{0, 0};
        map.x_begin = map.y_begin = 0;
        map.x_end = 2;
        map.y_end = 1;
        Figure figure;
        figure.panels.resize(1);
        figure.color_scales.resize(1);
        figure.panels[0].shapes.emplace_back(map);
        TextLabel label{1, 0.5, "مر", {}};
        label.subject.token = 0;
        label.inks = {{2, {1, 2, 3}, 0.5}, {4, {1, 2, 3}, 1.5}};
        figure.panels[0].shapes.emplace_back(label);
        return figure;
    };
    const SampleTrace sample;
    const TracePart a{&sample.reader(), {}, "a"};
    TracePart b = a;
    b.options.title = true;
    const Figure figure = make_difference(words, a, b);
    const auto& label = layer_of<TextLabel>(figure, 0, 1);
    REQUIRE(label.inks.size() == 2);
    const ColorScale& scale = figure.color_scales[0];
    CHECK(label.inks[0].color == ink_on(color_at(scale.map, position_on_scale(scale, -30))));
    CHECK(label.inks[1].color == ink_on(color_at(scale.map, position_on_scale(scale, 0))));
}
