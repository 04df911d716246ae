#include "analysis/runs/rename_runs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "tests/analysis/policy_trace.h"
#include "tests/analysis/sample_figures.h"

namespace kvscope::analysis::test {
namespace {

std::vector<trace::Reader> renamed_sample(const SampleTrace& sample, const std::vector<std::string>& renames) {
    std::vector<trace::Reader> readers;
    readers.push_back(sample.reader().with_labels({}));
    return rename_runs(readers, renames);
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

TEST_CASE("a renamed run has its new label in titles, legends and tables, and its recorded label in the recipe") {
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

    // The legend lists the runs, although policies and budgets could be listed separately.
    const Figure curves = made(reader, "step-kl", of_runs({1, 2, 3}));
    REQUIRE(curves.legend.size() == 5);  // includes the colors of agreement
    CHECK(curves.legend[0].label == "SnapKV, B = 16");
    CHECK(curves.legend[0].whole == "snapkv 16");
    CHECK(curves.legend[2].label == "ApertureKV");
}

TEST_CASE("a policy is renamed at all budgets, and labels keep the budgets") {
    const PolicyTrace stored(
        {{"full", PolicyTrace::n_tokens}, {"h2o", 40}, {"h2o", 20}, {"k-vec:window=8", 40}, {"k-vec:window=8", 20}});
    std::vector<trace::Reader> readers;
    readers.push_back(stored.reader().with_labels({}));
    const auto with_labels = rename_runs(readers, {"h2o=H2O", "k-vec:window=8=K-VEC"});
    const trace::Reader& reader = with_labels.front();
    CHECK(run_label(reader.run(0, 1)) == "H2O @ 40");
    CHECK(run_label(reader.run(0, 4)) == "K-VEC @ 20");
    const auto& runs = reader.runs(0);
    const auto legend = run_legend(runs, run_styles(runs), {1, 2, 3, 4});
    REQUIRE(legend.size() == 4);
    CHECK(legend[0].label == "H2O");
    CHECK(legend[1].label == "K-VEC");
    CHECK(legend[2].label.starts_with("20 entries"));  // ascending, whatever the order of the runs
    // A label for one budget does not name the other budget.
    const auto one = rename_runs(readers, {"h2o @ 40=H2O @ 40"});
    CHECK(run_legend(one.front().runs(0), run_styles(runs), {1, 2, 3, 4}).size() == 4);
    CHECK(run_legend(one.front().runs(0), run_styles(runs), {1, 2, 3, 4})[0].label == "H2O @ 40");
    CHECK_THROWS_AS(rename_runs(readers, {"h2o=X", "k-vec:window=8=X"}), FigureError);
    const auto renamed_both = rename_runs(readers, {"h2o @ 40=One", "h2o=H2O", "k-vec=K-VEC"});
    const trace::Reader& both = renamed_both.front();
    CHECK(run_label(both.run(0, 1)) == "One");  // the most specific rename wins, whatever the order
    CHECK(run_label(both.run(0, 2)) == "H2O @ 20");
    CHECK(run_label(both.run(0, 3)) == "K-VEC:window=8 @ 40");
    // Two policies with equal labels are listed by run.
    const auto renamed_alike = rename_runs(readers, {"h2o @ 40=X @ 40", "k-vec:window=8 @ 20=X @ 20"});
    const trace::Reader& alike = renamed_alike.front();
    const auto listed = run_legend(alike.runs(0), run_styles(runs), {1, 4});
    REQUIRE(listed.size() == 2);
    CHECK(listed[0].label == "X @ 40");
    CHECK(listed[1].label == "X @ 20");
}

TEST_CASE("runs are chosen by a policy with its parameters, in any notation") {
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens},
                              {"h2o", 40},
                              {"aperturekv:qd=off", 40},
                              {"aperturekv:qd=off", 20},
                              {"aperturekv", 40}});
    const trace::Reader reader = stored.reader();
    CHECK(chosen_runs(reader, of_runs({"aperturekv:qd=off"})) == std::vector<int>{2, 3});
    CHECK(chosen_runs(reader, of_runs({"aperturekv:qd=false"})) == std::vector<int>{2, 3});
    CHECK(chosen_runs(reader, of_runs({"aperturekv"})) == std::vector<int>{2, 3, 4});
    CHECK_THROWS_AS(chosen_runs(reader, of_runs({"aperturekv:qd=perhaps"})), FigureError);
}

TEST_CASE("a run is chosen by a label of tables of results, and by the trace's name") {
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens}, {"h2o", 40}, {"h2o", 20}, {"aperturekv:qd=off", 40}});
    const trace::Reader reader = stored.reader();
    const bool is_seen = reader.prompt(0).query_aware;
    const std::string question = is_seen ? "question seen" : "question hidden";
    const std::string trace = reader.path().stem().string();
    CHECK(chosen_runs(reader, of_runs({"h2o @ 40, " + question})) == std::vector{1});
    CHECK(chosen_runs(reader, of_runs({"h2o, " + question + " @ 20"})) == std::vector{2});
    CHECK(chosen_runs(reader, of_runs({"aperturekv:qd=false, " + question})) == std::vector{3});
    CHECK(chosen_runs(reader, of_runs({trace + ": h2o @ 20"})) == std::vector{2});
    CHECK(chosen_runs(reader, of_runs({trace + ": h2o @ 20, " + question})) == std::vector{2});
    CHECK(chosen_runs(reader, of_runs({"full, " + question})) == std::vector{0});
    for (const std::string& name : {std::string("h2o @ 40, ") + (is_seen ? "question hidden" : "question seen"),
                                    std::string("other: h2o @ 20"), "h2o @ 41, " + question})
        CHECK_THROWS_WITH(chosen_runs(reader, of_runs({name})), Catch::Contains("there is no run '" + name + "'"));
}

TEST_CASE("a name with a default parameter is not the name of the whole policy") {
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens}, {"aperturekv:qd=off", 40}, {"aperturekv:qd=off", 20}});
    const trace::Reader reader = stored.reader();
    CHECK(chosen_runs(reader, of_runs({"aperturekv"})) == std::vector{1, 2});
    for (const char* name : {"aperturekv:qd=on", "aperturekv:qd=on @ 40"})
        CHECK_THROWS_WITH(chosen_runs(reader, of_runs({name})), Catch::Contains("there is no run"));
}

TEST_CASE("the longest label before an equals sign is renamed") {
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens}, {"aperturekv", 40}, {"aperturekv:qd=off", 40}});
    std::vector<trace::Reader> recorded;
    recorded.push_back(stored.reader());
    const auto readers = rename_runs(recorded, {"aperturekv:qd=off=H"});
    CHECK(readers.front().run(0, 1).given_label.empty());
    CHECK(readers.front().run(0, 2).given_label == "H @ 40");
}

TEST_CASE("a run is chosen by its recorded or its given label") {
    const SampleTrace sample;
    const auto readers = renamed_sample(sample, {"snapkv 16=SnapKV=small"});
    for (const char* name : {"snapkv 16", "SnapKV=small", "1"})
        CHECK(chosen_runs(readers.front(), of_runs({name})) == std::vector{1});
    CHECK_THROWS_WITH(chosen_runs(readers.front(), of_runs({"other"})),
                      Catch::Contains("snapkv 16") && !Catch::Contains("small"));
}

TEST_CASE("renames without a matching run, or with one label for two runs, are rejected") {
    const SampleTrace sample;
    CHECK_THROWS_AS(renamed_sample(sample, {"h2o 16=H2O"}), FigureError);
    CHECK_THROWS_WITH(renamed_sample(sample, {"h2o 16=H2O"}), Catch::Contains("snapkv 16, snapkv 24"));
    CHECK_THROWS_WITH(renamed_sample(sample, {"snpkv=A"}), Catch::Contains("Did you mean snapkv"));
    CHECK_THROWS_WITH(renamed_sample(sample, {"snapkv 16"}), Catch::Contains("LABEL=NEW LABEL"));
    CHECK_THROWS_WITH(renamed_sample(sample, {"snapkv 16="}), Catch::Contains("no new label"));
    // The order of the two runs in the trace does not matter.
    CHECK_THROWS_WITH(renamed_sample(sample, {"snapkv 16=snapkv 24"}), Catch::Contains("would be called 'snapkv 24'"));
    CHECK_THROWS_WITH(renamed_sample(sample, {"snapkv 24=snapkv 16"}), Catch::Contains("would be called 'snapkv 16'"));
    CHECK_THROWS_WITH(renamed_sample(sample, {"snapkv 16=S", "snapkv 24=S"}), Catch::Contains("would be called 'S'"));
    CHECK_THROWS_AS(sample.reader().with_labels({{{0, 99}, "none"}}), std::out_of_range);
    std::vector<trace::Reader> readers;
    readers.push_back(sample.reader().with_labels({}));
    CHECK_THROWS_WITH(new_labels_of_settings(readers, {"snapkv=full"}), Catch::Contains("would both be called 'full'"));
}

}  // namespace kvscope::analysis::test
