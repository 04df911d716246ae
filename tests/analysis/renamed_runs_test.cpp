#include "analysis/renamed_runs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "analysis/run_choice.h"
#include "analysis/run_style.h"
#include "tests/analysis/sample_figures.h"

namespace kvscope::analysis::test {
namespace {

std::vector<trace::Reader> renamed_sample(const SampleTrace& sample, const std::vector<std::string>& renames) {
    std::vector<trace::Reader> readers;
    readers.push_back(sample.reader().with_labels({}));
    return renamed(readers, renames);
}

FigureOptions of_runs(std::vector<RunChoice> runs) {
    FigureOptions options;
    options.runs = std::move(runs);
    return options;
}

std::string recipe_of(const Figure& figure, const std::string& key) {
    for (const auto& [name, value] : figure.recipe)
        if (name == key) return value;
    return {};
}

}  // namespace

TEST_CASE("a renamed run is called so in titles, legends and tables, and the recipe has its own label") {
    const SampleTrace sample;
    const auto readers = renamed_sample(sample, {"snapkv 16=SnapKV, B = 16", "aperturekv 20=ApertureKV"});
    const trace::Reader& reader = readers.front();
    CHECK(sample.reader().run(0, 1).given_label.empty());
    CHECK(reader.run(0, 1).label == "snapkv 16");
    CHECK(reader.run_record(0, 1).given_label.empty());

    const Figure maps = made(reader, "retention", of_runs({1, 2}));
    CHECK(maps.panels.at(0).title == "SnapKV, B = 16");
    CHECK(maps.panels.at(0).whole_title == "snapkv 16");
    CHECK(maps.panels.at(1).title == "snapkv 24");
    CHECK(recipe_of(maps, "Run 1").starts_with("snapkv 16 (called SnapKV, B = 16): "));
    CHECK(cell(table_of(reader, "retention", of_runs({1})), 0, "label") == Cell("SnapKV, B = 16"));

    // One entry a run, although policies and budgets could be listed apart.
    const Figure curves = made(reader, "step-kl", of_runs({1, 2, 3}));
    REQUIRE(curves.legend.size() == 5);  // with what the colours of agreement mean
    CHECK(curves.legend[0].label == "SnapKV, B = 16");
    CHECK(curves.legend[0].whole == "snapkv 16");
    CHECK(curves.legend[2].label == "ApertureKV");
}

TEST_CASE("a run is chosen by either of its labels") {
    const SampleTrace sample;
    const auto readers = renamed_sample(sample, {"snapkv 16=SnapKV=small"});
    for (const char* name : {"snapkv 16", "SnapKV=small", "1"})
        CHECK(chosen_runs(readers.front(), of_runs({name})) == std::vector{1});
    CHECK_THROWS_WITH(chosen_runs(readers.front(), of_runs({"other"})),
                      Catch::Contains("snapkv 16") && !Catch::Contains("small"));
}

TEST_CASE("a label that no run has, and one for two runs, are refused") {
    const SampleTrace sample;
    CHECK_THROWS_AS(renamed_sample(sample, {"h2o 16=H2O"}), FigureError);
    CHECK_THROWS_WITH(renamed_sample(sample, {"h2o 16=H2O"}), Catch::Contains("snapkv 16, snapkv 24"));
    CHECK_THROWS_WITH(renamed_sample(sample, {"snapkv 16"}), Catch::Contains("LABEL=NEW LABEL"));
    CHECK_THROWS_WITH(renamed_sample(sample, {"snapkv 16="}), Catch::Contains("no new label"));
    // The same whichever of the two stands first in the trace.
    CHECK_THROWS_WITH(renamed_sample(sample, {"snapkv 16=snapkv 24"}), Catch::Contains("would be called 'snapkv 24'"));
    CHECK_THROWS_WITH(renamed_sample(sample, {"snapkv 24=snapkv 16"}), Catch::Contains("would be called 'snapkv 16'"));
    CHECK_THROWS_WITH(renamed_sample(sample, {"snapkv 16=S", "snapkv 24=S"}), Catch::Contains("would be called 'S'"));
    CHECK_THROWS_AS(sample.reader().with_labels({{{0, 99}, "none"}}), std::out_of_range);
}

}  // namespace kvscope::analysis::test
