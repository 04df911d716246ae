#include "analysis/runs/run_pairs.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "analysis/figures_of_several_traces.h"
#include "analysis/runs/cost_difference.h"
#include "tests/analysis/two_traces.h"

using namespace kvscope::analysis;
using namespace kvscope::analysis::test;
using Catch::Matchers::Contains;
namespace trace = kvscope::trace;

namespace {

trace::RunAttributes run_of(const std::string& policy, const std::string& parameters, int64_t budget) {
    trace::RunAttributes run;
    run.policy = policy;
    run.parameters_json = parameters;
    run.budget = budget;
    run.budget_fraction = static_cast<double>(budget) / 1000;
    return run;
}

std::vector<RunPair> pairs_of(const std::vector<trace::RunAttributes>& a, const std::vector<trace::RunAttributes>& b) {
    std::vector<const trace::RunAttributes*> of_a, of_b;
    for (const auto& run : a) of_a.push_back(&run);
    for (const auto& run : b) of_b.push_back(&run);
    return pair_runs(of_a, of_b);
}

}  // namespace

TEST_CASE("a run pairs with the run of equal policy, parameters and budget, or else with one of other parameters") {
    const std::vector<trace::RunAttributes> a = {run_of("full", "{}", 1000), run_of("snapkv", R"({"window":8})", 128),
                                                 run_of("snapkv", R"({"window":32})", 128), run_of("h2o", "{}", 64),
                                                 run_of("laq", "{}", 100)};
    std::vector<trace::RunAttributes> b = {run_of("h2o", "{}", 64), run_of("snapkv", R"({"window":16})", 128),
                                           run_of("snapkv", R"({"window":32})", 128), run_of("full", "{}", 2000),
                                           run_of("laq", "{}", 200)};
    b.back().budget_fraction = 0.1;  // the same share of a longer prompt
    using Pairs = std::vector<RunPair>;
    CHECK(pairs_of(a, b) == Pairs{{0, 3, true}, {1, 1, false}, {2, 2, true}, {3, 0, true}, {4, 4, true}});
    b[0].status = "failed";
    CHECK(pairs_of(a, b).size() == 4);
    CHECK(pairs_of({run_of("h2o", "{}", 64), run_of("h2o", "{}", 64)}, {run_of("h2o", "{}", 64)}).size() == 1);
}

TEST_CASE("runs pair first by equal budgets as given, and then by equal numbers of entries") {
    const auto asked = [](const std::string& parameters, int64_t budget, const std::string& text) {
        auto run = run_of("random", parameters, budget);
        run.requested_budget = text;
        return run;
    };
    using Pairs = std::vector<RunPair>;
    const std::vector<trace::RunAttributes> a = {asked("{}", 37, "50 %")};
    CHECK(pairs_of(a, {asked("{}", 37, "37"), asked("{}", 55, "50 %")}) == Pairs{{0, 1, true}});
    CHECK(pairs_of(a, {asked("{}", 55, "50 %"), asked("{}", 37, "37")}) == Pairs{{0, 0, true}});
    const std::string other = R"({"seed":1})";
    CHECK(pairs_of(a, {asked(other, 37, "37"), asked(other, 55, "50 %")}) == Pairs{{0, 1, false}});
    CHECK(pairs_of(a, {asked(other, 55, "50 %"), asked("{}", 37, "37")}) == Pairs{{0, 1, true}});
    CHECK(pairs_of({asked("{}", 11, "0.16666666")}, {asked("{}", 17, "0.1667")}) == Pairs{{0, 0, true}});  // one label
    // A share of bytes does not equal a share of entries.
    auto of_bytes = asked("{}", 55, "50 %");
    of_bytes.budget_of = "bytes";
    CHECK(pairs_of(a, {of_bytes, asked("{}", 37, "37")}) == Pairs{{0, 1, true}});
}

TEST_CASE("A − B of coverage subtracts the curves of paired runs, on an axis around zero") {
    const TwoTraces two;
    const FigureDefinition& coverage = figure_definition("coverage");
    const TracePart a{&two.second.reader(), {}, "two.h5"};
    const TracePart b{&two.first.reader(), {}, "one.h5"};
    const Figure difference = make_difference(coverage, a, b);
    const Figure of_a = made(two.second.reader(), "coverage", {});
    const Figure of_b = made(two.first.reader(), "coverage", {});
    double farthest = 0;
    for (size_t run = 0; run < 5; ++run) {
        const auto& curve = layer_of<Line>(difference, 0, run);
        CHECK(curve.label == layer_of<Line>(of_a, 0, run).label);
        for (size_t layer = 0; layer < curve.y.size(); ++layer) {
            CHECK(curve.y[layer] ==
                  Approx(layer_of<Line>(of_a, 0, run).y[layer] - layer_of<Line>(of_b, 0, run).y[layer]).margin(1e-9));
            farthest = std::max(farthest, std::abs(curve.y[layer]));
        }
    }
    REQUIRE(farthest > 1);  // percentage points: a budget is a smaller share of a longer prompt
    CHECK(difference.panels[0].y.min == -difference.panels[0].y.max);
    CHECK(difference.panels[0].y.max >= farthest);
    CHECK_THAT(difference.panels[0].title, Contains("two.h5 − one.h5"));

    const Table numbers = difference_numbers(coverage, a, b);
    CHECK(numbers.rows.size() == 5 * (1 + 3));
    for (size_t row = 0; row < numbers.rows.size(); ++row)
        CHECK(real(cell(numbers, row, "difference")) == real(cell(numbers, row, "a")) - real(cell(numbers, row, "b")));
}

TEST_CASE("A − B of two runs of one trace needs no equal policies, and rejects different numbers of layers") {
    const SampleTrace sample;
    FigureOptions one, other;
    one.runs = {"snapkv 24"};
    other.runs = {"aperturekv 20"};
    const TracePart a{&sample.reader(), one, "snapkv 24"};
    const TracePart b{&sample.reader(), other, "aperturekv 20"};
    for (const char* name : {"coverage", "recall", "step-kl", "cost"}) {
        CAPTURE(name);
        const Figure figure = make_difference(figure_definition(name), a, b);
        const auto* line = std::get_if<Line>(&figure.panels.front().shapes.front());
        REQUIRE(line);
        CHECK(line->label == "snapkv 24 − aperturekv 20");
        CHECK_FALSE(difference_numbers(figure_definition(name), a, b).rows.empty());
    }
    trace::sample::Options deep;
    deep.n_layers = 5;
    const SampleTrace deeper(deep);
    CHECK_THROWS_WITH(make_difference(figure_definition("coverage"), a, {&deeper.reader(), {}, "deeper.h5"}),
                      Contains("no run of A") || Contains("layers in A and"));
    one.runs = {"aperturekv 20"};
    CHECK_THROWS_WITH(make_difference(figure_definition("coverage"), {&sample.reader(), one, "t.h5"},
                                      {&deeper.reader(), one, "deeper.h5"}),
                      Contains("3 layers in A and 5 in B"));
}

TEST_CASE("A − B of KL per step subtracts step by step, also if one run is subtracted from each") {
    const SampleTrace sample;
    FigureOptions all, one;
    one.runs = {"snapkv 16"};
    const TracePart a{&sample.reader(), all, "t.h5"};
    TracePart b{&sample.reader(), one, "snapkv 16"};
    CHECK(layer_of<Line>(make_difference(figure_definition("step-kl"), a, b), 0).label ==
          "snapkv 16");  // only its pair
    b.against_each = true;
    const Figure difference = make_difference(figure_definition("step-kl"), a, b);
    REQUIRE(difference.panels[0].shapes.size() == 5 + 1);  // and the line at zero
    const auto kl = [&](int run) {
        return sample.reader().read<float>(trace::Place::of_run(0, run), trace::schema::run::step_kl);
    };
    const auto& curve = layer_of<Line>(difference, 0, 1);
    CHECK(curve.label == "snapkv 24 − snapkv 16");
    for (size_t step = 0; step < curve.y.size(); ++step)
        CHECK(curve.y[step] == static_cast<double>(kl(2)[step]) - static_cast<double>(kl(1)[step]));
    const auto& agreement = layer_of<Categories>(difference, 1);
    CHECK(agreement.ids[0] == 0);                      // both predict the full run's token
    CHECK(agreement.ids[agreement.columns - 1] == 3);  // neither does at the last step
}

TEST_CASE("the scatter of two traces shows the runs of both, and an arrow to each run of A from its pair") {
    const TwoTraces two;
    FigureOptions options;
    options.columns = {"coverage", "cache_bytes"};
    const TracePart a{&two.second.reader(), options, "two.h5"};
    const TracePart b{&two.first.reader(), options, "one.h5"};
    const Figure figure = make_difference(figure_definition("cost"), a, b);
    size_t n_arrows = 0, n_points = 0;
    for (const Shape& shape : figure.panels.front().shapes) {
        if (const auto* line = std::get_if<Line>(&shape)) {
            CHECK(line->arrow);
            CHECK(line->x.size() == 2);
            ++n_arrows;
        }
        n_points += std::holds_alternative<Scatter>(shape);
    }
    CHECK(n_arrows == 5);
    CHECK(n_points == 10);
    const auto& arrow = layer_of<Line>(figure, 0, 0);
    const Table numbers = difference_numbers(figure_definition("cost"), a, b);
    CHECK(real(cell(numbers, 0, "coverage_a")) == arrow.x[1]);  // A is at the arrowhead
    CHECK(real(cell(numbers, 0, "coverage_b")) == arrow.x[0]);
    CHECK(real(cell(numbers, 0, "coverage_difference")) == arrow.x[1] - arrow.x[0]);
    CHECK(whole(cell(numbers, 0, "run_a")) == arrow.subject.run);
}

TEST_CASE("a difference is better or worse if the best of its column is known, and empty cells have no difference") {
    const Column kl{"kl_mean", "KL", "nats", ColumnType::real, 4, Best::lowest};
    const Column kept{"kept_share", "Kept", "", ColumnType::real, 3};
    const Column bytes{"cache_bytes", "Cache", "B", ColumnType::integer, 0, Best::lowest};
    CHECK(judge_as_better_or_worse(kl, difference_of_cells(0.5, 0.7)) == Change::better);
    CHECK(judge_as_better_or_worse(kl, difference_of_cells(0.7, 0.5)) == Change::worse);
    CHECK(judge_as_better_or_worse(kl, difference_of_cells(0.5, 0.5)) == Change::none);
    CHECK(judge_as_better_or_worse(kept, difference_of_cells(0.7, 0.5)) == Change::none);
    CHECK(whole(difference_of_cells(int64_t{5}, int64_t{8})) == -3);
    CHECK(judge_as_better_or_worse(bytes, difference_of_cells(int64_t{5}, int64_t{8})) == Change::better);
    CHECK(std::holds_alternative<std::monostate>(difference_of_cells(Cell(), 1.0)));
    CHECK(std::holds_alternative<std::monostate>(difference_of_cells(std::nan(""), 1.0)));
    CHECK_FALSE(has_meaningful_difference({"budget", "Budget", "", ColumnType::integer}));
    CHECK(difference_column(kl).name == "kl_mean_difference");
}
