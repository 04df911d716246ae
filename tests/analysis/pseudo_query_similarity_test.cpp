#include <algorithm>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "analysis/drawing/pseudo_query_similarity_figure.h"

using namespace kvscope::analysis;

namespace {

/// Returns a prompt of 100 tokens; `lift` is added to all values after RoPE.
PromptQueries measured(const std::string& name, double lift) {
    PromptQueries prompt{name, 100, 8, {}, {}};
    prompt.conditions = {{true, "the answer", 100, 0, {1}, {1}},
                         {false, "phrase", 0, 0, {0.5 + lift}, {0.75}},
                         {true, "the answer", 0, 60, {0.6 + lift, 0.4 + lift, 0.8 + lift}, {0.9, 0.9, 0.7}}};
    for (const int64_t start : {0, 50, 100})
        prompt.curve.push_back({true, "the answer", start, 0, {0.5 + 0.005 * static_cast<double>(start)}, {0.9}});
    return prompt;
}

template <class Layer>
std::vector<Layer> layers_of(const Panel& panel) {
    std::vector<Layer> found;
    for (const auto& layer : panel.shapes) {
        if (const auto* one = std::get_if<Layer>(&layer)) found.push_back(*one);
    }
    return found;
}

}  // namespace

TEST_CASE("a single trial is a point, several trials are a box of five numbers", "[pseudo-queries]") {
    const auto prompt = measured("report", 0);
    const Figure figure = pseudo_query_figure({&prompt, 1});
    REQUIRE(figure.panels.size() == 2);
    const Panel& left = figure.panels[0];
    REQUIRE(left.y.ticks.size() == 3);
    CHECK(left.y.ticks[0].label == "SC & SP");
    CHECK(left.y.ticks[1].label == "DC & DP, phrase, from 0");
    CHECK(left.y.ticks[2].label == "SC & DP, random below 60");

    const auto points = layers_of<Scatter>(left);
    REQUIRE(points.size() == 4);
    CHECK(points[0].x == std::vector<double>{1});
    CHECK(points[2].x == std::vector<double>{0.5});
    CHECK(points[3].x == std::vector<double>{0.75});
    CHECK(points[2].y[0] < points[3].y[0]);
    CHECK(points[2].y[0] == Approx(1).margin(0.5));

    // 0.4, 0.6, 0.8 have the quartiles 0.5 and 0.7; the median is the last line.
    std::vector<Line> box;
    for (const auto& line : layers_of<Line>(left)) {
        if (line.label == "report, after RoPE") box.push_back(line);
    }
    REQUIRE_FALSE(box.empty());
    CHECK(box.back().x[0] == Approx(0.6));
    double least = 1, greatest = 0;
    for (const auto& line : box) {
        for (const double x : line.x) {
            if (!(x >= 0)) continue;
            least = std::min(least, x);
            greatest = std::max(greatest, x);
        }
        for (const double y : line.low) CHECK(y == Approx(2).margin(0.5));
    }
    CHECK(least == Approx(0.4));
    CHECK(greatest == Approx(0.8));
    const auto has_edge = [&](double edge) {
        return std::any_of(box.begin(), box.end(), [&](const Line& line) {
            return line.x.size() == 5 && line.y[0] != line.y[2] &&
                   (line.x[0] == Approx(edge) || line.x[1] == Approx(edge));
        });
    };
    CHECK(has_edge(0.5));
    CHECK(has_edge(0.7));
}

TEST_CASE("the curve shows the distance of the answer from its true place", "[pseudo-queries]") {
    const PromptQueries prompts[] = {measured("one", 0), measured("two", 0.1)};
    const Figure figure = pseudo_query_figure(prompts);
    REQUIRE(figure.panels.size() == 2);
    const auto curves = layers_of<Line>(figure.panels[1]);
    REQUIRE(curves.size() == 4);  // two prompts, each after and before RoPE
    CHECK(curves[0].x == std::vector<double>{100, 50, 0});
    CHECK(curves[0].y == std::vector<double>{0.5, 0.75, 1});
    CHECK(curves[1].y == std::vector<double>{0.9, 0.9, 0.9});
    CHECK(curves[0].style.color == curves[1].style.color);
    CHECK_FALSE(curves[0].style.color == curves[2].style.color);
    CHECK(figure.panels[1].y.min < 0.4);
    CHECK(figure.legend.size() == 4);
    CHECK(figure.legend[1].label == "two (100 tokens)");
    CHECK(layers_of<Scatter>(figure.panels[0]).size() == 8);
}

TEST_CASE("without offsets there is no right panel, and without conditions there is no figure", "[pseudo-queries]") {
    auto prompt = measured("report", 0);
    prompt.curve.clear();
    CHECK(pseudo_query_figure({&prompt, 1}).panels.size() == 1);
    CHECK(pseudo_query_table({&prompt, 1}).rows.size() == 3);
    prompt.conditions.clear();
    CHECK_THROWS_AS(pseudo_query_figure({&prompt, 1}), std::invalid_argument);
    CHECK_THROWS_AS(pseudo_query_figure({}), std::invalid_argument);
}
