#include <catch2/catch.hpp>

#include "analysis/drawing/figure_definition.h"
#include "analysis/figures_of_several_traces.h"
#include "analysis/measures/token_coverage.h"
#include "tests/analysis/kept_example.h"
#include "tests/trace/sample_trace.h"

using namespace kvscope::analysis;
namespace trace = kvscope::trace;

TEST_CASE("coverage of model, layers and heads by hand") {
    const auto sets = test::by_hand();
    CHECK(model_coverage(sets.view()).count == 4);
    CHECK(model_coverage(sets.view()).share == Approx(4.0 / 6));
    const auto layers = layer_coverage(sets.view());
    REQUIRE(layers.size() == 2);
    CHECK(layers[0].count == 3);
    CHECK(layers[1].count == 2);
    CHECK(layers[1].share == Approx(2.0 / 6));
    const auto heads = token_coverage_of_heads(sets.view());
    REQUIRE(heads.size() == 4);
    CHECK(heads[0].count == 3);
    CHECK(heads[1].count == 2);
    CHECK(heads[2].count == 0);
    CHECK(heads[3].share == Approx(2.0 / 6));
}

TEST_CASE("coverage equals the result of a plain loop") {
    const auto sets = test::random_sets(4, 3, 29, GENERATE(4U, 5U));
    size_t model = 0;
    std::vector<size_t> layers(4, 0);
    for (uint32_t token = 0; token < 29; ++token) {
        bool anywhere = false;
        for (size_t layer = 0; layer < 4; ++layer) {
            bool here = false;
            for (size_t row = 0; row < 3; ++row) here = here || sets.keeps(layer, row, token);
            layers[layer] += here ? 1 : 0;
            anywhere = anywhere || here;
        }
        model += anywhere ? 1 : 0;
    }
    CHECK(model_coverage(sets.view()).count == model);
    for (size_t layer = 0; layer < 4; ++layer) CHECK(layer_coverage(sets.view())[layer].count == layers[layer]);
}

TEST_CASE("an empty prompt has coverage 0") {
    const test::OwnedSets sets(1, 1, 0, {{}});
    CHECK(model_coverage(sets.view()).count == 0);
    CHECK(model_coverage(sets.view()).share == 0);
}

TEST_CASE("the legend says which curve covers the curves of policies that keep the same tokens") {
    const trace::sample::TemporaryFolder folder;
    // The sample's kept sets depend only on the budget.
    trace::sample::write_runs(folder / "t.h5", {{"snapkv", 16}, {"h2o", 16}, {"aperturekv", 20}});
    const trace::Reader reader(folder / "t.h5");
    const Figure figure = figure_definition("coverage").make(reader, {});
    std::vector<std::string> labels;
    for (const LegendEntry& entry : figure.legend)
        if (entry.symbol == LegendEntry::Symbol::line && labels.size() < 3) labels.push_back(entry.label);
    CHECK(labels == std::vector<std::string>{"snapkv (covered by h2o)", "h2o", "aperturekv"});

    // Runs of two traces have separate entries that share colors, so that none is marked as covered.
    const std::vector<TracePart> twice{{&reader, {}, "a"}, {&reader, {}, "b"}};
    for (const LegendEntry& entry : make_figure(figure_definition("coverage"), twice).legend)
        CHECK_THAT(entry.label, !Catch::Matchers::Contains("covered"));
}
