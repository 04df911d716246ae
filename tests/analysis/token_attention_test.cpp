#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "analysis/drawing/figure_definition.h"
#include "tests/trace/sample_trace.h"

using namespace kvscope::analysis;
namespace trace = kvscope::trace;

namespace {

const FigureDefinition& definition() { return figure_definition("token-attention"); }

double attention(const Table& table, size_t row) { return std::get<double>(table.rows.at(row).cells.at(3)); }

}  // namespace

TEST_CASE("attention by token: the mean over all heads, or one curve per chosen head") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    const auto n_tokens = static_cast<size_t>(reader.prompt(0).visible_tokens());
    const auto n_heads = static_cast<size_t>(reader.model().n_heads);
    const auto recorded = reader.window_attention(0, 1);  // (H, N)
    FigureOptions options;
    options.layers = {1};
    const Table mean = definition().numbers(reader, options);
    REQUIRE(mean.rows.size() == n_tokens);
    for (size_t token = 0; token < n_tokens; ++token) {
        double sum = 0;
        for (size_t head = 0; head < n_heads; ++head) sum += static_cast<double>(recorded[head * n_tokens + token]);
        CHECK(attention(mean, token) == Approx(sum / static_cast<double>(n_heads)));
    }
    options.heads = {1, 3};
    const Table heads = definition().numbers(reader, options);
    REQUIRE(heads.rows.size() == 2 * n_tokens);
    CHECK(attention(heads, n_tokens + 5) == static_cast<double>(recorded[3 * n_tokens + 5]));
    const Figure figure = definition().make(reader, options);
    REQUIRE(figure.panels.size() == 2);
    CHECK(figure.panels[1].subject.head == 3);
    const auto& line = std::get<Line>(figure.panels[1].shapes.at(0));
    CHECK(line.y.at(5) == static_cast<double>(recorded[3 * n_tokens + 5]));
}

TEST_CASE("attention by token: curves of long prompts keep the largest values") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::Options sample;
    sample.n_tokens = 2500;
    sample.n_layers = 1;
    trace::sample::write(folder / "t.h5", sample);
    const trace::Reader reader(folder / "t.h5");
    FigureOptions options;
    options.heads = {0};
    const Figure figure = definition().make(reader, options);
    const auto& line = std::get<Line>(figure.panels.at(0).shapes.at(0));
    CHECK(line.x.size() <= 1000);
    const auto recorded = reader.window_attention(0, 0);
    const auto end = recorded.begin() + reader.prompt(0).visible_tokens();
    CHECK(*std::max_element(line.y.begin(), line.y.end()) ==
          static_cast<double>(*std::max_element(recorded.begin(), end)));
    CHECK_THAT(figure.caption, Catch::Contains("A point is the largest value of 3 tokens."));
}
