#include "analysis/measures/recall.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "analysis/drawing/figure_definition.h"
#include "analysis/runs/cost_table.h"
#include "analysis/runs/run_style.h"
#include "tests/analysis/kept_example.h"
#include "tests/trace/sample_trace.h"

using namespace kvscope::analysis;
using Catch::Matchers::Contains;
namespace trace = kvscope::trace;

TEST_CASE("recall by hand") {
    // Two KV heads, six tokens. Tokens 1 and 4 tie for head 1's third best: the lower one wins.
    const std::vector<float> attention{0.9F, 0.1F, 0.5F, 0.0F, 0.2F, 0.6F,   //
                                       0.0F, 0.3F, 0.8F, 0.7F, 0.3F, 0.1F};  //
    const auto gold = most_attended_positions(attention, 2, 3);
    CHECK(gold == std::vector<uint32_t>{0, 2, 5, 1, 2, 3});
    CHECK(most_attended_positions(attention, 2, 9).size() == 12);

    const test::OwnedSets sets(1, 2, 6, {{0, 1, 5}, {4, 5}});
    CHECK(layer_recall(gold, 2, sets.view(), 0) == std::vector<double>{2.0 / 3, 0});

    // Repeated to four query heads: each is compared with the best tokens of its KV head.
    const test::OwnedSets repeated(1, 4, 6, {{0, 3, 4}, {2, 5}, {1, 2, 3}, {}});
    CHECK(layer_recall(gold, 2, repeated.view(), 0) == std::vector<double>{1.0 / 3, 2.0 / 3, 1, 0});

    CHECK(std::isnan(layer_recall({}, 2, sets.view(), 0)[0]));
    CHECK_THROWS_AS(most_attended_positions(attention, 5, 3), std::invalid_argument);
    CHECK_THROWS_AS(layer_recall(gold, 3, sets.view(), 0), std::invalid_argument);
}

TEST_CASE("recall of a trace: figure, table and table of runs equal the results of a plain loop") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    const auto attention =
        reader.read<float>(trace::Place::of_run(0, 0), trace::schema::run::answer_attention);  // (3, 2, 48)
    const auto kept = reader.kept(0, 2);                                                       // snapkv 24
    std::vector<double> layers;
    for (size_t layer = 0; layer < 3; ++layer) {
        double found = 0;
        for (size_t head = 0; head < 2; ++head) {
            const float* of_head = &attention[(layer * 2 + head) * 48];
            for (const uint32_t token : kept->row(layer, head)) {
                const auto better = std::count_if(of_head, of_head + 48, [&](float a) { return a > of_head[token]; });
                found += better < 24 ? 1 : 0;
            }
        }
        layers.push_back(found / 48);
    }
    FigureOptions options;
    options.runs = {"2"};
    const FigureDefinition& definition = figure_definition("recall");
    const Figure figure = definition.make(reader, options);
    const auto& line = std::get<Line>(figure.panels.at(0).shapes.at(0));
    REQUIRE(line.y.size() == 3);
    for (size_t layer = 0; layer < 3; ++layer) CHECK(line.y[layer] == Approx(100 * layers[layer]));
    const double model = std::accumulate(layers.begin(), layers.end(), 0.0) / 3;
    const Table numbers = definition.numbers(reader, options);
    CHECK(numbers.rows.size() == 1 + 3 * 3);
    CHECK(std::get<double>(numbers.rows[0].cells.back()) == Approx(model));

    const Table runs = cost_table(reader, 0);
    const auto column = static_cast<size_t>(
        std::find_if(runs.columns.begin(), runs.columns.end(), [](const Column& c) { return c.name == "recall"; }) -
        runs.columns.begin());
    CHECK(std::get<double>(runs.rows[0].cells.at(column)) == 1);
    CHECK(std::get<double>(runs.rows[2].cells.at(column)) == Approx(model));
    CHECK(std::holds_alternative<std::monostate>(runs.rows[6].cells.at(column)));  // the run failed
}

TEST_CASE("recall and the table of runs omit runs that drop no tokens, and name them") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    constexpr int merging = 4;
    REQUIRE(reader.kept(0, merging)->merges());
    FigureOptions options;
    options.runs = {"2", std::to_string(merging)};
    const FigureDefinition& definition = figure_definition("recall");
    const Figure figure = definition.make(reader, options);
    CHECK(figure.legend.size() == 1);
    CHECK_THAT(figure.caption, Contains("drop no tokens: " + run_label(reader.run(0, merging))));
    CHECK(definition.numbers(reader, options).rows.size() == 1 + 3 * 3);

    const std::vector<TracePart> both{{&reader, options, "a"}, {&reader, options, "b"}};
    CHECK_THAT(definition.make_difference(std::span<const TracePart, 2>(both)).caption, Contains("drop no tokens: "));

    options.runs = {std::to_string(merging)};
    CHECK_THROWS_AS(definition.make(reader, options), NothingToShow);
    const TracePart side{&reader, options};
    const std::vector<TracePart> sides{side, side};
    CHECK_THROWS_AS(definition.make_difference(std::span<const TracePart, 2>(sides)), NothingToShow);
}

TEST_CASE("a trace without answer attention has no recall") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write_runs(folder / "t.h5", {{"snapkv", 16}});
    const trace::Reader reader(folder / "t.h5");
    CHECK_THROWS_AS(figure_definition("recall").make(reader, {}), NothingToShow);
    CHECK_THROWS_WITH(figure_definition("recall").numbers(reader, {}),
                      Contains("answer_attention") && Contains("make the trace again"));
    for (const Row& row : cost_table(reader, 0).rows) CHECK(row.cells.size() == cost_table(reader, 0).columns.size());
}

TEST_CASE("a run without recorded recall does not hide the recall of the others") {
    const trace::sample::TemporaryFolder folder;
    const trace::sample::Options o;
    const auto prompt = trace::sample::prompt(o);
    trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.generator = "sample"});
    writer.write_model(trace::sample::model(o));
    writer.write_prompt(0, prompt);
    writer.write_run(0, 0, trace::sample::full_run(o, prompt));  // without recall
    for (const int budget : {16, 24, 20}) {
        auto run = trace::sample::selecting_run(o, prompt, "snapkv", budget);
        if (budget != 24) run.recall.assign(3 * 2, budget == 16 ? 0.25F : 0.5F);
        writer.write_run(0, budget == 16 ? 1 : budget == 24 ? 2 : 3, run);
    }
    writer.finish();
    const trace::Reader reader(folder / "t.h5");
    const Table runs = cost_table(reader, 0);
    const auto column =
        static_cast<size_t>(std::ranges::find(runs.columns, "recall", &Column::name) - runs.columns.begin());
    CHECK(std::holds_alternative<std::monostate>(runs.rows[0].cells.at(column)));
    CHECK(std::get<double>(runs.rows[1].cells.at(column)) == 0.25);
    CHECK(std::holds_alternative<std::monostate>(runs.rows[2].cells.at(column)));
    CHECK(std::get<double>(runs.rows[3].cells.at(column)) == 0.5);
    const FigureDefinition& definition = figure_definition("recall");
    const Figure figure = definition.make(reader, {});
    CHECK(figure.legend.size() == 2);
    CHECK_THAT(figure.caption, Contains("does not store their recall: " + run_label(reader.run(0, 2))));
    CHECK(definition.numbers(reader, {}).rows.size() == 2 * (1 + 3 * 3));
    FigureOptions options;
    options.runs = {"2"};
    CHECK_THROWS_WITH(definition.make(reader, options), Contains("no recall of " + run_label(reader.run(0, 2))));
}
