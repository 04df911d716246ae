// Arrangement and colors of maps of heads.
#include <catch2/catch.hpp>

#include "analysis/drawing/figure_definition.h"
#include "tests/analysis/sample_figures.h"

using namespace kvscope::analysis;
using namespace kvscope::analysis::test;
namespace trace = kvscope::trace;

TEST_CASE("query similarity of one head in many layers is a grid") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::Options sample;
    sample.n_layers = 10;
    trace::sample::write(folder / "t.h5", sample);
    const trace::Reader reader(folder / "t.h5");
    FigureOptions options;
    options.layers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    options.heads = {1};
    const Figure figure = made(reader, "query-similarity", options);
    REQUIRE(figure.panels.size() == 10);
    CHECK(figure.columns == 4);
    CHECK(figure.rows == 3);
    CHECK((figure.panels[9].row == 2 && figure.panels[9].column == 1));
    CHECK(figure.panels[9].title == "L9 H1");
}

TEST_CASE("heads that are alike are dark in maps of the Jensen-Shannon divergence") {
    const SampleTrace sample;
    const ColorScale scale = made(sample.reader(), "jsd", {}).color_scales.at(0);
    CHECK(position_on_scale(scale, scale.min) == 1);
    CHECK(position_on_scale(scale, scale.max) == 0);
}
