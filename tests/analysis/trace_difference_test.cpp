#include <array>
#include <catch2/catch.hpp>
#include <cmath>

#include "analysis/figures_of_several_traces.h"
#include "analysis/measures/heads_keeping_token.h"
#include "tests/analysis/policy_trace.h"
#include "tests/analysis/sample_figures.h"

namespace kvscope::analysis::test {
namespace {

using Catch::Matchers::Contains;

/// Returns the largest absolute value of the figure's maps.
double farthest(const Figure& figure) {
    double most = 0;
    for (const Panel& panel : figure.panels)
        for (const Shape& shape : panel.shapes)
            if (const auto* map = std::get_if<HeatMap>(&shape))
                for (const float value : map->values)
                    if (std::isfinite(value)) most = std::max(most, std::abs(static_cast<double>(value)));
    return most;
}

FigureOptions with_runs(std::vector<RunChoice> runs, const std::string& source = "") {
    FigureOptions options;
    options.runs = std::move(runs);
    options.source = source;
    return options;
}

}  // namespace

TEST_CASE("A − B pairs runs by policy, parameters and budget in every figure, whatever their order", "[difference]") {
    const PolicyTrace one({{"h2o", 40}, {"snapkv:window=8", 20}, {"h2o", 20}});
    const PolicyTrace other({{"snapkv:window=8", 20}, {"h2o", 20}, {"h2o", 40}});
    const trace::Reader reader_a = one.reader(), reader_b = other.reader();
    const TracePart a{&reader_a, {}, "one"}, b{&reader_b, {}, "other"};
    for (const char* name : {"retention", "budgets"}) {
        CAPTURE(name);
        const Figure figure = make_difference(figure_definition(name), a, b);
        REQUIRE(figure.panels.size() == 3);
        CHECK(farthest(figure) == 0);
        CHECK(figure.panels[0].title == "h2o @ 40: one − other");
        CHECK_THAT(figure.title, Contains("h2o @ 40") && Contains("one − other"));
        const Table numbers = difference_numbers(figure_definition(name), a, b);
        for (size_t row = 0; row < numbers.rows.size(); ++row) {
            const auto run_a = static_cast<int>(whole(cell(numbers, row, "run_a")));
            const auto run_b = static_cast<int>(whole(cell(numbers, row, "run_b")));
            CHECK(reader_a.run(0, run_a).label == reader_b.run(0, run_b).label);
        }
        CHECK(unpaired_runs(figure_definition(name), a, b).empty());
    }
    // Figures that choose one or two of many runs use A's choice.
    const Figure prompt = make_difference(figure_definition("prompt"), a, b);
    CHECK(farthest(prompt) == 0);
    CHECK(prompt.panels.at(0).title == "h2o @ 40: one − other");
    CHECK_THAT(prompt.title, Contains("h2o @ 40"));
    const Figure difference = make_difference(figure_definition("difference"), a, b);
    CHECK(farthest(difference) == 0);
    // The pairs are in the order in which runs are named.
    const TracePart named_a{&reader_a, with_runs({"snapkv:window=8 @ 20", "h2o @ 40"}), "one"};
    const TracePart named_b{&reader_b, with_runs({"snapkv:window=8 @ 20", "h2o @ 40"}), "other"};
    CHECK(farthest(make_difference(figure_definition("difference"), named_a, named_b)) == 0);
}

TEST_CASE("A − B omits runs without a pair and names them", "[difference]") {
    const PolicyTrace one({{"h2o", 40}, {"snapkv:window=8", 20}});
    const PolicyTrace other({{"snapkv:window=8", 20}, {"h2o", 20}, {"laq:window=8", 30}});
    const trace::Reader reader_a = one.reader(), reader_b = other.reader();
    const TracePart a{&reader_a, {}, "one"}, b{&reader_b, {}, "other"};
    const std::string left_out = "of A (one): h2o @ 40; of B (other): h2o @ 20, laq:window=8 @ 30";
    for (const char* name : {"retention", "budgets", "coverage"}) {
        CAPTURE(name);
        const Figure figure = make_difference(figure_definition(name), a, b);
        CHECK_THAT(figure.caption, Contains(left_out));
        CHECK(unpaired_runs(figure_definition(name), a, b) == left_out);
    }
    CHECK(make_difference(figure_definition("retention"), a, b).panels.size() == 1);
    // The default run of `prompt` has no pair.
    CHECK_THROWS_AS(make_difference(figure_definition("prompt"), a, b), NothingToShow);
    CHECK_THROWS_AS(check_difference(figure_definition("prompt"), a, b), NothingToShow);
}

TEST_CASE("A − B of a query-head run and a KV-head run uses a common unit", "[difference]") {
    const PolicyTrace stored({{"snapkv:window=8,granularity=query_head", 20}, {"snapkv:window=8", 20}});
    const trace::Reader reader = stored.reader();
    const auto group = static_cast<double>(reader.model().n_heads) / static_cast<double>(reader.model().n_kv_heads);
    REQUIRE(group > 1);
    const TracePart a{&reader, with_runs({0}), "a"}, b{&reader, with_runs({1}), "b"};
    const auto shares = [&](int run) {
        const auto kept = reader.kept(0, run);
        std::vector<double> counts = count_heads_keeping_per_layer(kept_sets(*kept, PolicyTrace::n_tokens));
        for (double& count : counts) count *= 100.0 / static_cast<double>(kept->n_rows);
        return counts;
    };
    const std::vector<double> of_a = shares(0), of_b = shares(1);
    const Figure maps = make_difference(figure_definition("retention"), a, b);
    const auto& map = layer_of<HeatMap>(maps, 0);
    for (size_t i = 0; i < map.values.size(); ++i) CHECK(map.values[i] == Approx(of_a[i] - of_b[i]).margin(1e-4));
    CHECK(maps.color_scales.at(0).title == "A − B: Share of heads that keep the token");
    CHECK(maps.color_scales.at(0).unit == "%");
    CHECK_THAT(maps.title, Contains("Share of heads that keep the token (%)") && Contains("granularity=query_head"));
    const Table numbers = difference_numbers(figure_definition("retention"), a, b);
    CHECK(cell(numbers, 0, "unit") == Cell("Share of heads that keep the token (%)"));
    CHECK_THAT(std::get<kvscope::SharedText>(cell(numbers, 0, "panel")).string(),
               Contains("granularity=query_head") && Contains(" − "));

    // Every query head keeps 20 entries; a KV head's cache holds the entries of its group.
    const Figure budgets = make_difference(figure_definition("budgets"), a, b);
    for (const float value : layer_of<HeatMap>(budgets, 0).values) CHECK(value == Approx(20 * (group - 1)));
    CHECK(budgets.color_scales.at(0).title == "A − B: Entries kept per KV head");
    CHECK(budgets.panels.at(0).y.title == "KV head");

    const TracePart by_heads_a{&reader, with_runs({0}, "heads"), "a"},
        by_heads_b{&reader, with_runs({1}, "heads"), "b"};
    const Figure prompt = make_difference(figure_definition("prompt"), by_heads_a, by_heads_b);
    CHECK(prompt.color_scales.at(0).title == "A − B: Share of heads of all layers that keep the token");
    CHECK(farthest(prompt) <= 100);
    // Also for panels side by side.
    const Figure beside = made(reader, "prompt", with_runs({0, 1}, "heads"));
    CHECK(beside.color_scales.at(0).unit == "%");
    CHECK(beside.color_scales.at(0).max == 100);
}

TEST_CASE("A − B of divergences with different numbers of query heads compares KV heads", "[difference]") {
    const PolicyTrace stored({{"aperturekv:granularity=query_head", 20}, {"aperturekv", 20}});
    const trace::Reader reader = stored.reader();
    const auto n = static_cast<size_t>(reader.model().n_heads), n_kv = static_cast<size_t>(reader.model().n_kv_heads);
    const size_t group = n / n_kv;
    REQUIRE(group > 1);
    const auto stored_jsd = [&](int run) {
        return reader.read_layer<float>(trace::Place::of_run(0, run), trace::schema::run::head_jsd, 0);
    };
    const std::vector<float> by_query_heads = stored_jsd(0), by_kv_heads = stored_jsd(1);
    REQUIRE(by_query_heads.size() == n * n);
    REQUIRE(by_kv_heads.size() == n_kv * n_kv);
    double mean = 0;  // between KV heads 0 and 1
    for (size_t i = 0; i < group; ++i)
        for (size_t j = group; j < 2 * group; ++j)
            mean += static_cast<double>(by_query_heads[i * n + j]) / static_cast<double>(group * group);
    const TracePart a{&reader, with_runs({0}, "scores"), "a"}, b{&reader, with_runs({1}, "scores"), "b"};
    const Figure figure = make_difference(figure_definition("jsd"), a, b);
    const auto& map = layer_of<HeatMap>(figure, 0);
    REQUIRE(map.values.size() == n_kv * n_kv);
    CHECK(map.values[0] == 0);
    CHECK(map.values[1] == Approx(mean - static_cast<double>(by_kv_heads[1])).margin(1e-6));
    CHECK(figure.panels.at(0).x.title == "KV head");
    CHECK_THAT(figure.title, Contains("JSD between KV heads (nats)") && Contains("granularity=query_head"));
    CHECK(cell(difference_numbers(figure_definition("jsd"), a, b), 0, "unit") == Cell("JSD between KV heads (nats)"));

    // Traces of models with different numbers of query heads.
    trace::sample::Options other;
    other.n_heads = 6;
    const SampleTrace sample, more(other);
    const TracePart four{&sample.reader(), {}, "four"}, six{&more.reader(), {}, "six"};
    const Figure models = make_difference(figure_definition("jsd"), four, six);
    CHECK(layer_of<HeatMap>(models, 0).rows == 2);
    CHECK(models.panels.at(0).x.title == "KV head");
}

TEST_CASE("A − B of runs by query heads and by KV heads has one axis where each query head has its own KV head",
          "[difference]") {
    trace::sample::Options own;
    own.n_heads = own.n_kv_heads = 4;
    const PolicyTrace stored({{"snapkv:window=8,granularity=query_head", 20}, {"snapkv:window=8", 20}},
                             trace::sample::recipe, own);
    const trace::Reader reader = stored.reader();
    const TracePart a{&reader, with_runs({0}), "a"}, b{&reader, with_runs({1}), "b"};
    CHECK(make_difference(figure_definition("budgets"), a, b).panels.at(0).y.title == "KV head");
}

TEST_CASE("every difference names its pairs and its unit in the title and in the table", "[difference]") {
    const SampleTrace one, two;
    for (const auto& [name, unit_column, in_figure, in_table] : std::vector<std::array<std::string, 4>>{
             {"coverage", "unit", "Coverage (% of tokens)", "Coverage (share of tokens)"},
             {"recall", "unit", "Recall (% of best tokens)", "Recall (share of best tokens)"},
             {"step-kl", "unit", "KL to the full cache (nats)", "KL to the full cache (nats)"},
             {"cost", "kl_mean_unit", "KL (nats)", "KL (nats)"},
             {"budgets", "unit", "Entries kept", "Entries kept"},
             {"retention", "unit", "KV heads that keep the token", "KV heads that keep the token"}}) {
        CAPTURE(name);
        const FigureDefinition& definition = figure_definition(name);
        FigureOptions options;
        options.runs = {"snapkv 24"};
        const TracePart a{&two.reader(), options, "two.h5"}, b{&one.reader(), options, "one.h5"};
        CHECK_THAT(make_difference(definition, a, b).title,
                   Contains(in_figure) && Contains("snapkv 24") && Contains("two.h5 − one.h5"));
        const Table table = difference_numbers(definition, a, b);
        CHECK_THAT(table.title, Contains(in_table) && Contains("snapkv 24") && Contains("two.h5 − one.h5"));
        REQUIRE_FALSE(table.rows.empty());
        for (size_t row = 0; row < table.rows.size(); ++row) CHECK(cell(table, row, unit_column) == Cell(in_table));
    }
}

TEST_CASE("a figure of one of several prompts names the prompt", "[difference]") {
    trace::sample::Options several;
    several.n_questions = 3;
    const SampleTrace sample(several);
    const TracePart part{&sample.reader(), {}, ""};
    const Figure figure = make_figure(figure_definition("retention"), {&part, 1});
    const std::string words = "prompt 0 (" + sample.reader().prompt(0).name + "), one of 3";
    CHECK_THAT(figure.caption, Contains(words));
    CHECK_THAT(figure.title, Contains(words));
    bool is_in_recipe = false;
    for (const auto& [key, value] : figure.recipe)
        is_in_recipe = is_in_recipe || (key == "Prompt" && value.find("0 of 0 to 2") == 0);
    CHECK(is_in_recipe);
    CHECK_THAT(make_figure(figure_definition("spectrum"), {&part, 1}).caption, !Contains("one of 3"));
    const SampleTrace one;
    const TracePart alone{&one.reader(), {}, ""};
    CHECK_THAT(make_figure(figure_definition("retention"), {&alone, 1}).caption, !Contains("one of"));
}

}  // namespace kvscope::analysis::test
