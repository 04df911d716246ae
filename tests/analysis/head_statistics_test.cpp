#include "analysis/measures/head_statistics.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "analysis/drawing/figure_definition.h"
#include "analysis/measures/kv_head_attention.h"
#include "tests/trace/sample_trace.h"

using namespace kvscope::analysis;
namespace trace = kvscope::trace;

TEST_CASE("head statistics: averaged over groups, without the window") {
    // Four query heads, two KV heads, four tokens before a window of one, whose values must not matter.
    const std::vector<float> attention{0.4F, 0.0F, 0.0F, 0.0F, 9.0F,   //
                                       0.0F, 0.4F, 0.0F, 0.0F, 1.0F,   // group 0: 0.2, 0.2, 0, 0
                                       0.1F, 0.1F, 0.1F, 0.1F, 0.0F,   //
                                       0.1F, 0.1F, 0.1F, 0.1F, 0.6F};  // group 1: 0.1 everywhere
    CHECK(kv_head_attention(attention, 4, 2, 1) == std::vector<float>{0.2F, 0.2F, 0, 0, 0.1F, 0.1F, 0.1F, 0.1F});
    const auto statistics = head_statistics(attention, 4, 2, 1);
    REQUIRE(statistics.size() == 2);
    CHECK(statistics[0].deviation == Approx(0.1));
    CHECK(statistics[0].entropy == Approx(std::log(2.0)));
    CHECK(statistics[1].deviation == Approx(0.0).margin(1e-9));
    CHECK(statistics[1].entropy == Approx(std::log(4.0)));
    CHECK_THROWS_AS(head_statistics(attention, 4, 3, 1), std::invalid_argument);
    CHECK_THROWS_AS(head_statistics(attention, 4, 2, 5), std::invalid_argument);
}

TEST_CASE(
    "head statistics as a figure: one map per number, with heads from top to bottom and layers from left to right") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    FigureOptions options;
    options.layers = {0, 2};
    const auto expected = head_statistics(reader.window_attention(0, 2), 4, 2, 8);
    const FigureDefinition& definition = figure_definition("head-statistics");
    const Table table = definition.numbers(reader, options);
    REQUIRE(table.rows.size() == 4);
    CHECK(std::get<int64_t>(table.rows[3].cells[0]) == 2);
    CHECK(std::get<int64_t>(table.rows[3].cells[1]) == 1);
    CHECK(std::get<double>(table.rows[3].cells[2]) == expected[1].deviation);
    CHECK(std::get<double>(table.rows[3].cells[3]) == expected[1].entropy);
    const Figure figure = definition.make(reader, options);
    REQUIRE(figure.panels.size() == 2);
    REQUIRE(figure.color_scales.size() == 2);
    const auto& entropies = std::get<HeatMap>(figure.panels[1].shapes.at(0));
    CHECK((entropies.rows == 2 && entropies.columns == 2 && entropies.color_scale == 1));
    CHECK(entropies.values[1 * 2 + 1] == static_cast<float>(expected[1].entropy));
    const auto& deviations = std::get<HeatMap>(figure.panels[0].shapes.at(0));
    CHECK(deviations.values[0 * 2 + 1] == static_cast<float>(expected[0].deviation));
}
