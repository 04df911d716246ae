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

namespace {

/// A run of the sample trace with its recall in each row.
struct KnownRecall {
    std::string policy;
    int64_t budget = 0;
    int window = 0;  ///< the parameter; 0: the policy has none
    float recall = 0;
};

void write_known_recall(const std::filesystem::path& path, const std::vector<KnownRecall>& runs) {
    const trace::sample::Options o;
    const auto prompt = trace::sample::prompt(o);
    trace::Writer writer(path, trace::sample::recipe, {.generator = "sample"});
    writer.write_model(trace::sample::model(o));
    writer.write_prompt(0, prompt);
    writer.write_run(0, 0, trace::sample::full_run(o, prompt));
    int index = 0;
    for (const KnownRecall& known : runs) {
        auto run = trace::sample::selecting_run(o, prompt, known.policy, known.budget);
        run.parameters_json = known.window ? R"({"window": )" + std::to_string(known.window) + "}" : "{}";
        run.recall.assign(3 * 2, known.recall);
        writer.write_run(0, ++index, run);
    }
    writer.finish();
}

size_t n_lines(const Panel& panel) {
    return static_cast<size_t>(
        std::ranges::count_if(panel.shapes, [](const Shape& shape) { return std::holds_alternative<Line>(shape); }));
}

}  // namespace

TEST_CASE("recall over the window joins runs that differ only in the window") {
    const trace::sample::TemporaryFolder folder;
    write_known_recall(folder / "t.h5", {{"snapkv", 16, 32, 0.75F},
                                         {"snapkv", 16, 8, 0.25F},
                                         {"snapkv", 24, 8, 0.5F},   // no other window with this budget
                                         {"h2o", 16, 0, 0.125F}});  // no window
    const trace::Reader reader(folder / "t.h5");
    const FigureDefinition& definition = figure_definition("recall");
    FigureOptions options;
    options.own["over"] = "window";
    CHECK_NOTHROW(definition.check(reader, options));
    const Figure figure = definition.make(reader, options);
    REQUIRE(figure.panels.size() == 1);
    const auto& line = std::get<Line>(figure.panels[0].shapes.at(0));
    CHECK(line.x == std::vector<double>{8, 32});
    CHECK(line.y == std::vector<double>{25, 75});
    CHECK(n_lines(figure.panels[0]) == 1);
    CHECK(figure.legend.size() == 1);
    CHECK(figure.panels[0].x.title == "Window");
    CHECK_THAT(figure.caption, Contains("no other run differs only in the window: snapkv 24, h2o 16"));

    const Table numbers = definition.numbers(reader, options);
    CHECK(numbers.rows.size() == 2 * (1 + 3 * 3));
    const auto column =
        static_cast<size_t>(std::ranges::find(numbers.columns, "window", &Column::name) - numbers.columns.begin());
    CHECK(std::get<int64_t>(numbers.rows[0].cells.at(column)) == 32);

    options.runs = {"h2o"};
    CHECK_THROWS_WITH(definition.check(reader, options), Contains("differ only in the parameter window"));
    CHECK_THROWS_AS(definition.make(reader, options), NothingToShow);
}

TEST_CASE("recall over layers or the budget has only these panels, and other axes are refused") {
    const trace::sample::TemporaryFolder folder;
    write_known_recall(folder / "t.h5", {{"snapkv", 16, 8, 0.25F}, {"snapkv", 24, 8, 0.5F}});
    const trace::Reader reader(folder / "t.h5");
    const FigureDefinition& definition = figure_definition("recall");
    const auto titles = [&](const std::string& over) {
        FigureOptions options;
        options.own["over"] = over;
        std::vector<std::string> found;
        for (const Panel& panel : definition.make(reader, options).panels) found.push_back(panel.title);
        return found;
    };
    CHECK(titles("") == std::vector<std::string>{"Each layer", "Whole model"});
    CHECK(titles("layer") == std::vector<std::string>{"Each layer"});
    CHECK(titles("budget") == std::vector<std::string>{"Whole model"});
    FigureOptions options;
    options.own["over"] = "depth";
    CHECK_THROWS_WITH(definition.check(reader, options), "--over is layer, budget or window, not 'depth'");
}

TEST_CASE("recall of more than eight runs has a panel for each budget, with equal y axes") {
    const trace::sample::TemporaryFolder folder;
    std::vector<KnownRecall> runs;
    for (const char* policy : {"snapkv", "h2o", "cam"})
        for (const int64_t budget : {24, 16, 20}) runs.push_back({policy, budget, 0, 0.5F});
    write_known_recall(folder / "t.h5", runs);
    const trace::Reader reader(folder / "t.h5");
    FigureOptions options;
    options.own["over"] = "layer";
    const Figure figure = figure_definition("recall").make(reader, options);
    REQUIRE(figure.panels.size() == 3);
    const std::vector<std::string> titles{"Budget 16", "Budget 20", "Budget 24"};
    for (size_t i = 0; i < 3; ++i) {
        CHECK(figure.panels[i].title == titles[i]);
        CHECK(n_lines(figure.panels[i]) == 3);
        CHECK(figure.panels[i].y.max == figure.panels[0].y.max);
    }
    options.runs = {"snapkv", "h2o"};  // six lines
    CHECK(figure_definition("recall").make(reader, options).panels.size() == 1);

    // No two runs have the same budget: nine lines of one policy become four and five.
    runs.clear();
    for (int64_t budget = 16; budget < 25; ++budget) runs.push_back({"snapkv", budget, 0, 0.5F});
    write_known_recall(folder / "one.h5", runs);
    options.runs.clear();
    const Figure one = figure_definition("recall").make(trace::Reader(folder / "one.h5"), options);
    REQUIRE(one.panels.size() == 2);
    CHECK(n_lines(one.panels[0]) == 4);
    CHECK(n_lines(one.panels[1]) == 5);
    CHECK(one.panels[1].title == "Each layer, 2 of 2");
}
