#include "analysis/drawing/figure_definition.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "analysis/figures_of_several_traces.h"
#include "analysis/measures/head_clustering.h"
#include "analysis/runs/cost_table.h"
#include "analysis/runs/run_choice.h"
#include "analysis/tables/table_format.h"
#include "tests/analysis/policy_trace.h"
#include "tests/analysis/sample_figures.h"

using namespace kvscope::analysis;
using namespace kvscope::analysis::test;
using Catch::Matchers::Contains;
namespace trace = kvscope::trace;

TEST_CASE("every file in figures/ defines a listed figure with the file's name") {
    std::set<std::string> names;
    for (const FigureDefinition& definition : figure_definitions()) {
        CHECK(names.insert(definition.name).second);
        CHECK_FALSE(definition.title.empty());
        CHECK_FALSE(definition.summary.empty());
        CHECK(definition.make != nullptr);
        CHECK(definition.numbers != nullptr);
        CHECK(&figure_definition(definition.name) == &definition);
    }
    for (const char* name :
         {"retention", "jsd", "coverage", "query-similarity", "spectrum", "budgets", "cost", "step-kl", "difference"})
        CHECK(names.count(name) == 1);
    CHECK_THROWS_WITH(figure_definition("retenton"), Contains("Did you mean retention") && Contains("jsd"));
}

TEST_CASE("runs are chosen by label, policy or number, in the trace's order") {
    const SampleTrace sample;
    FigureOptions options;
    CHECK(chosen_runs(sample.reader(), options) == std::vector<int>{1, 2, 3, 4, 5});
    options.runs = {"aperturekv", "snapkv 24", "3"};
    CHECK(chosen_runs(sample.reader(), options) == std::vector<int>{2, 3});
    options.runs = {"snapkv"};
    CHECK(chosen_runs(sample.reader(), options) == std::vector<int>{1, 2});
    options.runs = {"full"};
    CHECK(chosen_runs(sample.reader(), options) == std::vector<int>{0});
    options.runs = {"6"};
    CHECK_THROWS_WITH(chosen_runs(sample.reader(), options), Contains("budget above the window"));
    options.runs = {"snap"};
    CHECK_THROWS_WITH(chosen_runs(sample.reader(), options), Contains("no run 'snap'") && Contains("1 (snapkv 16)"));
    const auto refusal_of = [&](const char* run) {
        options.runs = {run};
        return chosen_runs(sample.reader(), options);
    };
    CHECK_THROWS_WITH(refusal_of("snapvk"), Contains("in this prompt. Did you mean snapkv? There are 0 (full"));
    CHECK_THROWS_WITH(refusal_of("kvslimer 13"), Contains("Did you mean kvslimmer"));
    CHECK_THROWS_WITH(refusal_of("nothing"), Contains("in this prompt; there are 0 (full"));
    options = {};
    options.prompt = 1;
    CHECK_THROWS_WITH(chosen_runs(sample.reader(), options), Contains("no prompt 1"));
}

TEST_CASE("layers are chosen in ascending order without repetition") {
    const SampleTrace sample;
    FigureOptions options;
    CHECK(chosen_layers(sample.reader(), options) == std::vector<int>{0, 1, 2});
    options.layers = {2, 0, 2};
    CHECK(chosen_layers(sample.reader(), options) == std::vector<int>{0, 2});
    options.layers = {3};
    CHECK_THROWS_WITH(chosen_layers(sample.reader(), options), Contains("no layer 3") && Contains("0 to 2"));
}

TEST_CASE("retention: picture and numbers count the kept sets") {
    const SampleTrace sample;
    FigureOptions options;
    options.runs = {"snapkv"};
    options.layers = {0, 2};
    const FigureDefinition& definition = figure_definition("retention");
    const Figure figure = definition.make(sample.reader(), options);
    const Table table = definition.numbers(sample.reader(), options);
    REQUIRE(figure.panels.size() == 2);
    REQUIRE(figure.color_scales.size() == 1);
    CHECK(figure.color_scales[0].min == 1);
    CHECK(figure.color_scales[0].max == 2);
    CHECK(figure.panels[0].y.ticks.at(1).label == "2");

    std::map<std::tuple<int, int, int>, int> counts;
    for (const int run : {1, 2}) {
        const auto kept = sample.reader().kept(0, run);
        for (const int layer : {0, 2}) {
            for (size_t row = 0; row < 2; ++row) {
                for (const uint32_t token : kept->row(static_cast<size_t>(layer), row)) {
                    ++counts[{run, layer, static_cast<int>(token)}];
                }
            }
        }
    }
    REQUIRE(table.rows.size() == counts.size());
    for (const Row& row : table.rows) {
        const auto key = std::make_tuple(static_cast<int>(whole(row.cells[0])), static_cast<int>(whole(row.cells[2])),
                                         static_cast<int>(whole(row.cells[3])));
        CHECK(counts.at(key) == whole(row.cells[4]));
        CHECK(whole(row.cells[5]) == 2);
    }
    const auto& map = std::get<HeatMap>(figure.panels[1].shapes[0]);
    REQUIRE(map.rows == 2);
    REQUIRE(map.columns == 48);
    for (int i = 0; i < 2; ++i) {
        for (int token = 0; token < 48; ++token) {
            const auto found = counts.find({2, 2 * i, token});
            CHECK(map.values[static_cast<size_t>(i * 48 + token)] ==
                  static_cast<float>(found == counts.end() ? 0 : found->second));
        }
    }
}

TEST_CASE("coverage: lines are the numbers in per cent, and runs keep their colors") {
    const SampleTrace sample;
    FigureOptions options;
    const FigureDefinition& definition = figure_definition("coverage");
    const Table table = definition.numbers(sample.reader(), options);
    const Figure all = definition.make(sample.reader(), options);
    REQUIRE(table.rows.size() == 5 * 4);
    std::set<uint32_t> layer_one;
    const auto kept = sample.reader().kept(0, 3);
    for (size_t row = 0; row < 2; ++row) layer_one.insert(kept->row(1, row).begin(), kept->row(1, row).end());
    const Row& row = table.rows[2 * 4 + 2];  // run 3, layer 1; the first row of each run is for the model
    CHECK(whole(row.cells[0]) == 3);
    CHECK(whole(row.cells[4]) == 1);
    CHECK(whole(row.cells[5]) == static_cast<int64_t>(layer_one.size()));
    CHECK(real(row.cells[6]) == Approx(static_cast<double>(layer_one.size()) / 48));
    const auto& line = std::get<Line>(all.panels[0].shapes[2]);
    CHECK(line.y[1] == Approx(100.0 * static_cast<double>(layer_one.size()) / 48));

    options.runs = {"aperturekv"};
    const Figure one = definition.make(sample.reader(), options);
    CHECK(std::get<Line>(one.panels[0].shapes[0]).style.color == line.style.color);
}

TEST_CASE("jsd: heads are sorted by similarity in each layer, and axes and numbers name them") {
    const SampleTrace sample;
    const FigureDefinition& definition = figure_definition("jsd");
    FigureOptions options;
    options.source = "attention-by-similarity";
    const Figure figure = definition.make(sample.reader(), options);
    const Table table = definition.numbers(sample.reader(), options);
    REQUIRE(figure.panels.size() == 3);
    CHECK(!figure.shared_x);
    for (size_t layer = 0; layer < 3; ++layer) {
        const auto stored =
            sample.reader().read_layer<float>(trace::Place::of_prompt(0), trace::schema::prompt::head_jsd, layer);
        const auto& map = layer_of<HeatMap>(figure, layer);
        const size_t n = map.rows;
        const auto order = order_heads_by_similarity(stored, n);
        const Panel& panel = figure.panels[layer];
        REQUIRE(panel.x.ticks.size() == n);
        REQUIRE(panel.y.ticks.size() == n);
        for (size_t i = 0; i < n; ++i) {
            CHECK(panel.x.ticks[i].label == std::to_string(order[i]));
            CHECK(panel.y.ticks[i].label == panel.x.ticks[i].label);
            for (size_t j = 0; j < n; ++j) {
                CHECK(map.values[i * n + j] == stored[order[i] * n + order[j]]);
                const auto& cells = table.rows.at((layer * n + i) * n + j).cells;
                CHECK(whole(cells[2]) == static_cast<int64_t>(order[i]));
                CHECK(whole(cells[3]) == static_cast<int64_t>(order[j]));
                CHECK(real(cells[4]) == static_cast<double>(map.values[i * n + j]));
            }
        }
    }
    FigureOptions plain;
    const TracePart a{&sample.reader(), options, "a"};
    const TracePart b{&sample.reader(), plain, "b"};
    CHECK_THROWS_WITH(make_difference(definition, a, b), Contains("labels on the Query head axis"));
}

TEST_CASE("jsd: each source reads its own data and names it") {
    const SampleTrace sample;
    const FigureDefinition& definition = figure_definition("jsd");
    FigureOptions options;
    options.layers = {1};
    const auto stored =
        sample.reader().read_layer<float>(trace::Place::of_prompt(0), trace::schema::prompt::head_jsd, 1);
    Figure figure = definition.make(sample.reader(), options);
    CHECK(std::get<HeatMap>(figure.panels.at(0).shapes[0]).values == stored);
    CHECK_THAT(color_scale_title(figure.color_scales[0]), Contains("attention") && Contains("query head"));
    Table table = definition.numbers(sample.reader(), options);
    REQUIRE(table.rows.size() == 16);
    CHECK(real(table.rows[6].cells[4]) == static_cast<double>(stored[6]));

    options.source = "scores";
    figure = definition.make(sample.reader(), options);
    CHECK(std::get<HeatMap>(figure.panels.at(0).shapes[0]).values ==
          sample.reader().read_layer<float>(trace::Place::of_run(0, 3), trace::schema::run::head_jsd, 1));
    CHECK_THAT(color_scale_title(figure.color_scales[0]), Contains("scores of aperturekv 20"));

    options.source = "kv-heads";
    figure = definition.make(sample.reader(), options);
    const auto& map = std::get<HeatMap>(figure.panels.at(0).shapes[0]);
    REQUIRE(map.rows == 2);
    CHECK(map.values[0] == 0);
    CHECK(map.values[1] > 0);
    CHECK_THAT(color_scale_title(figure.color_scales[0]), Contains("averaged per KV head"));

    options.source = "scores";
    options.runs = {"snapkv 16"};
    CHECK_THROWS_AS(definition.make(sample.reader(), options), NothingToShow);
    options.runs = {"snapkv", "aperturekv"};
    CHECK_THROWS_WITH(definition.make(sample.reader(), options), Contains("one run at a time"));
    options.source = "guess";
    CHECK_THROWS_WITH(definition.numbers(sample.reader(), options), Contains("attention, kv-heads, scores"));
}

TEST_CASE("every figure has its recipe and date, and uses size and title") {
    const SampleTrace sample;
    FigureOptions options;
    options.title = true;
    options.width_mm = 120;
    options.height_mm = 70;
    for (const FigureDefinition& definition : figure_definitions()) {
        const Figure figure = definition.make(sample.reader(), options);
        CHECK(figure.name == definition.name);
        CHECK(figure.show_title);
        CHECK(figure.width_mm == 120);
        CHECK(figure.height_mm == 70);
        CHECK(figure.created_utc == sample.reader().created_utc());
        CHECK_FALSE(figure.caption.empty());
        std::string recipe;
        for (const auto& [name, value] : figure.recipe) recipe += name + "=" + value + "\n";
        CHECK_THAT(recipe, Contains("Model=sample, f32") && Contains("Prompt=0 (sample)") && Contains("Trace=t.h5"));
    }
    options.width_mm = -1;
    CHECK_THROWS_AS(figure_definition("jsd").make(sample.reader(), options), FigureError);
}

TEST_CASE("every figure reports choices that the trace does not have") {
    const SampleTrace sample;
    FigureOptions no_prompt;
    no_prompt.prompt = 5;
    FigureOptions no_layer;
    no_layer.layers = {17};
    for (const FigureDefinition& definition : figure_definitions()) {
        CHECK_THROWS_WITH(definition.make(sample.reader(), no_prompt), Contains("no prompt 5"));
        CHECK_THROWS_WITH(definition.numbers(sample.reader(), no_prompt), Contains("no prompt 5"));
        const auto& options = definition.options;
        const bool heeds_layers = std::any_of(options.begin(), options.end(),
                                              [](const FigureOption& option) { return option.name == "layers"; });
        if (!heeds_layers) continue;
        CHECK_THROWS_WITH(definition.make(sample.reader(), no_layer), Contains("no layer 17"));
        CHECK_THROWS_WITH(definition.numbers(sample.reader(), no_layer), Contains("no layer 17"));
    }
}

TEST_CASE("figures of an incomplete trace and of an empty trace") {
    const trace::sample::TemporaryFolder folder;
    {
        trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.generator = "sample"});
        writer.write_model(trace::sample::model());
        writer.write_prompt(0, trace::sample::prompt());
    }
    const trace::Reader reader(folder / "t.h5.part");
    CHECK_NOTHROW(figure_definition("jsd").make(reader, {}));
    CHECK_THROWS_AS(figure_definition("retention").make(reader, {}), NothingToShow);
    CHECK_THROWS_AS(figure_definition("coverage").numbers(reader, {}), NothingToShow);
    CHECK(cost_table(reader, 0).rows.empty());

    { const trace::Writer writer(folder / "empty.h5", trace::sample::recipe, {}); }
    const trace::Reader empty(folder / "empty.h5.part");
    for (const FigureDefinition& definition : figure_definitions()) {
        CHECK_THROWS_AS(definition.make(empty, {}), NothingToShow);
    }
}

TEST_CASE("check throws the same errors as make and numbers, for every figure and source") {
    const trace::sample::TemporaryFolder folder;
    {
        trace::Writer writer(folder / "begun.h5", trace::sample::recipe, {.generator = "sample"});
        writer.write_model(trace::sample::model());
        writer.write_prompt(0, trace::sample::prompt());
    }
    { const trace::Writer writer(folder / "empty.h5", trace::sample::recipe, {}); }
    trace::sample::write(folder / "whole.h5");
    for (const char* name : {"whole.h5", "begun.h5.part", "empty.h5.part"}) {
        const trace::Reader reader(folder / name);
        for (const FigureDefinition& definition : figure_definitions()) {
            const FigureOption* source = find_option(definition, "source");
            for (const std::string& each : source ? source->choices : std::vector<std::string>{""}) {
                CAPTURE(name, definition.name, each);
                FigureOptions options;
                options.source = each;
                const std::string why = why_no_figure(definition, reader, options);
                const auto nothing = [](const auto& make) -> std::string {
                    try {
                        make();
                    } catch (const NothingToShow& thrown) {
                        return thrown.what();
                    }
                    return "";
                };
                CHECK(nothing([&] { definition.make(reader, options); }) == why);
                CHECK(nothing([&] { definition.numbers(reader, options); }) == why);
                if (std::string(name) == "whole.h5") CHECK(why.empty());
                if (std::string(name) == "empty.h5.part") CHECK_FALSE(why.empty());
                if (definition.own_choice && why.empty()) CHECK_NOTHROW(definition.own_choice(reader, options));
            }
        }
    }
}

TEST_CASE("an option that a figure does not use is refused with a list of the used options") {
    const auto refused = [](const char* figure, const FigureOptions& options, const auto& matcher) {
        CHECK_THROWS_AS(check_options(figure_definition(figure), options), FigureError);
        CHECK_THROWS_WITH(check_options(figure_definition(figure), options), matcher);
    };
    FigureOptions heads;
    heads.heads = {2};
    refused("retention", heads, Contains("does not use --head") && Contains("--run, --layer"));
    CHECK_NOTHROW(check_options(figure_definition("query-similarity"), heads));
    heads.source = "adjacent";
    refused("spectrum", heads, Contains("--head") && Contains("eigenvalues, cumulative"));
    FigureOptions source;
    source.source = "foo";
    refused("coverage", source, Contains("does not use --source") && Contains("--run, --layer"));
    refused("jsd", source, Contains("no source 'foo'") && Contains("kv-heads"));
    source.source = "KV_heads";
    refused("jsd", source, Contains("Did you mean kv-heads"));
    FigureOptions runs;
    runs.runs = {"snapkv"};
    refused("jsd", runs, Contains("--run only with --source scores"));
    runs.source = "scores";
    CHECK_NOTHROW(check_options(figure_definition("jsd"), runs));
    FigureOptions columns;
    columns.columns = {"coverage", "kl_mean"};
    refused("step-kl", columns, Contains("--column"));
    CHECK_NOTHROW(check_options(figure_definition("cost"), columns));

    // Options for other figures are ignored.
    runs.layers = {1};
    CHECK(options_used_by_figure(figure_definition("jsd"), runs).runs == runs.runs);
    CHECK(options_used_by_figure(figure_definition("step-kl"), runs).layers.empty());
    CHECK(options_used_by_figure(figure_definition("step-kl"), runs).source.empty());
    runs.source = "attention";
    CHECK(options_used_by_figure(figure_definition("jsd"), runs).runs.empty());
    CHECK(options_used_by_figure(figure_definition("spectrum"), runs).layers == runs.layers);
}

TEST_CASE("a figure with a default choice of runs says which runs it shows") {
    const SampleTrace sample;
    const auto choice = [&](const char* figure, const FigureOptions& options) {
        return figure_definition(figure).own_choice(sample.reader(), options);
    };
    CHECK(choice("prompt", {}) == "only snapkv 16, the first of 5 runs");
    CHECK(choice("difference", {}) == "snapkv 16 − snapkv 24, the first two of 5 runs");
    FigureOptions named;
    named.runs = {"1", "2"};
    CHECK(choice("prompt", named).empty());
    CHECK(choice("difference", named).empty());
    CHECK(choice("jsd", {}).empty());
}

TEST_CASE("prompt: a long prompt fills pages of equal length that fit on paper") {
    trace::sample::Options long_one;
    long_one.n_tokens = 6000;
    long_one.n_layers = 1;
    const SampleTrace sample(long_one);
    FigureOptions options;
    options.runs = {"1", "2"};
    const Figure figure = figure_definition("prompt").make(sample.reader(), options);
    const auto pages = split_into_pages(figure);
    REQUIRE(pages.size() > 1);
    std::set<std::string> tokens;
    for (const Figure& page : pages) {
        REQUIRE(page.panels.size() == 2);
        CHECK(page.rows == 1);
        CHECK(page.panel_height_mm <= 230);
        CHECK(page.panels[0].y.max == pages.front().panels[0].y.max);
        CHECK_THAT(page.panels[0].note, Contains("tokens "));
        for (const Shape& shape : page.panels[1].shapes) {
            if (const auto* label = std::get_if<TextLabel>(&shape)) tokens.insert(label->text);
        }
    }
    CHECK(tokens.count(" w5999") == 1);
    CHECK(tokens.size() > 4000);

    // Short prompts share a page, in several rows of runs.
    const SampleTrace short_one;
    options.runs = {"1", "2", "3", "4", "5"};
    const auto one = split_into_pages(figure_definition("prompt").make(short_one.reader(), options));
    CHECK(one.size() == 1);
    CHECK(one.front().rows == 2);
    CHECK(one.front().panels.size() == 5);
}

TEST_CASE("step-kl: each row of the map has space for its label") {
    const SampleTrace sample;
    const Figure figure = figure_definition("step-kl").make(sample.reader(), {});
    REQUIRE(figure.row_heights.size() == 2);
    CHECK(figure.row_heights[1] / static_cast<double>(figure.panels[1].y.ticks.size()) >= 3);
}

TEST_CASE("cost table: the numbers of each run in the trace") {
    const SampleTrace sample;
    const Table table = cost_table(sample.reader(), 0);
    REQUIRE(table.rows.size() == 7);
    const auto cell = [&](size_t row, const std::string& name) {
        for (size_t c = 0; c < table.columns.size(); ++c) {
            if (table.columns[c].name == name) return table.rows[row].cells.at(c);
        }
        throw std::out_of_range(name);
    };
    CHECK(table.rows[0].control);
    CHECK_FALSE(table.rows[1].control);
    CHECK(real(cell(0, "kept_share")) == 1);
    CHECK(real(cell(0, "kl_mean")) == 0);
    CHECK(real(cell(1, "kept_share")) == Approx(16.0 / 48));
    CHECK(real(cell(1, "removed_share")) == Approx(32.0 / 48));
    CHECK(real(cell(1, "agreement")) == Approx(5.0 / 6));
    const auto kl = sample.reader().read<float>(trace::Place::of_run(0, 1), trace::schema::run::step_kl);
    double sum = 0;
    for (const float value : kl) sum += static_cast<double>(value);
    CHECK(real(cell(1, "kl_mean")) == Approx(sum / 6));
    CHECK(whole(cell(0, "cache_bytes")) == 3 * 2 * 48 * 8 * 2 * 4);
    CHECK(whole(cell(1, "cache_bytes_predicted")) == 3 * 2 * 16 * 8 * 2 * 4);
    CHECK(real(cell(0, "bytes_share")) == 1);
    CHECK(real(cell(1, "bytes_share")) == Approx(static_cast<double>(whole(cell(1, "cache_bytes"))) /
                                                 static_cast<double>(whole(cell(0, "cache_bytes")))));
    CHECK(real(cell(4, "first_token_s")) == 0.25);
    CHECK(std::holds_alternative<std::monostate>(cell(1, "first_token_s")));
    CHECK(std::get<kvscope::SharedText>(cell(6, "status")).string() == "failed");
    CHECK(std::get<kvscope::SharedText>(cell(6, "message")).string() == "expected a budget above the window");
    CHECK(std::holds_alternative<std::monostate>(cell(6, "kl_mean")));
    CHECK(format_table(table, TableFormat::csv).find("cache_bytes_predicted") != std::string::npos);
    CHECK(format_table(table, TableFormat::text).find("Predicted") == std::string::npos);  // equal to the held bytes
    CHECK_THROWS_AS(cost_table(sample.reader(), 3), FigureError);
    for (const char* name : {"attention_kept", "recall"}) {
        CAPTURE(name);
        CHECK(real(cell(0, name)) == 1);
        CHECK(real(cell(1, name)) < 1);
        for (const size_t run : {4, 5}) CHECK(std::holds_alternative<std::monostate>(cell(run, name)));
    }
}

TEST_CASE("cost table: a run that keeps every token is never best in measures of dropped tokens") {
    const test::PolicyTrace stored(
        {{"full", 60}, {"think:window=8,recent=8", 45}, {"snapkv:window=8", 20}, {"snapkv:window=8", 80}});
    const Table table = cost_table(stored.reader(), 0);
    const auto column = static_cast<size_t>(std::find_if(table.columns.begin(), table.columns.end(),
                                                         [](const Column& c) { return c.name == "attention_kept"; }) -
                                            table.columns.begin());
    std::vector<bool> empty;
    for (const Row& row : table.rows) empty.push_back(std::holds_alternative<std::monostate>(row.cells[column]));
    CHECK(empty == std::vector<bool>{false, true, false, true});
}
