#include "analysis/what_if/what_if_curve.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "analysis/drawing/figure_definition.h"
#include "analysis/figures_of_several_traces.h"
#include "analysis/measures/recall.h"
#include "analysis/measures/token_coverage.h"
#include "analysis/runs/rename_runs.h"
#include "analysis/what_if/curve_figure.h"
#include "analysis/what_if/curve_runs.h"
#include "tests/analysis/policy_trace.h"

using namespace kvscope::analysis;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using kvscope::analysis::test::PolicyTrace;
namespace policies = kvscope::policies;
namespace trace = kvscope::trace;

namespace {

std::vector<int> all_of(const trace::Reader& reader) {
    std::vector<int> runs;
    for (int run = 0; run < reader.n_runs(0); ++run) runs.push_back(run);
    return runs;
}

CurveChoice choice_of(const trace::Reader& reader, const std::string& over) {
    return group_runs_into_curves(reader.runs(0), all_of(reader), PolicyTrace::n_tokens, over);
}

SelectAgain by(const std::shared_ptr<const WhatIf>& what_if) {
    return [what_if](const policies::ParameterValues& values, int64_t budget) { return (*what_if)(values, budget); };
}

/// Counts the tokens that at least one head keeps, one by one.
double coverage_of(const trace::RunRecord& run) {
    const std::set<uint32_t> tokens(run.kept_indices.begin(), run.kept_indices.end());
    return static_cast<double>(tokens.size()) / PolicyTrace::n_tokens;
}

double mean_of(const std::vector<float>& values) {
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value);
    return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("curves: runs that differ only in budget are points of one curve", "[curves]") {
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens},
                              {"h2o", 40},
                              {"snapkv:window=8", 20},
                              {"h2o", 12},
                              {"snapkv:window=16", 20},
                              {"h2o:granularity=query_head", 20}});
    const trace::Reader reader = stored.reader();
    const CurveChoice choice = choice_of(reader, over_budget);
    CHECK(choice.left_out.empty());
    REQUIRE(choice.curves.size() == 4);
    CHECK(choice.curves[0].label == "h2o");
    CHECK(choice.curves[0].runs == std::vector<int>{1, 3});
    CHECK(choice.curves[0].source.recorded == std::vector<double>{40, 12});
    CHECK(choice.curves[1].label == "snapkv:window=8");
    CHECK(choice.curves[3].label == "h2o:granularity=query_head");

    const CurveChoice windows = choice_of(reader, "window");
    REQUIRE(windows.curves.size() == 1);
    CHECK(windows.curves[0].label == "snapkv @ 20");
    CHECK(windows.curves[0].runs == std::vector<int>{2, 4});
    CHECK(windows.curves[0].source.recorded == std::vector<double>{8, 16});
    REQUIRE(windows.left_out.size() == 3);
    CHECK_THAT(windows.left_out[0].why, Contains("h2o @ 40: it has no numeric parameter 'window'"));
}

TEST_CASE("curves: a run with the parameter auto has no axis value, not even another run's value", "[curves]") {
    const PolicyTrace stored({{"h2o", 20}, {"h2o:recent=5", 20}, {"h2o:recent=9", 20}});
    const CurveChoice choice = choice_of(stored.reader(), "recent");
    REQUIRE(choice.curves.size() == 1);
    CHECK(choice.curves[0].runs == std::vector<int>{0, 1, 2});
    CHECK(choice.curves[0].places == std::vector<std::pair<double, int>>{{5, 1}, {9, 2}});
    CHECK(choice.curves[0].source.recorded == std::vector<double>{5, 9});
}

TEST_CASE("curves: each point has the numbers of the selection at that budget", "[curves]") {
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens},
                              {"h2o", 40},
                              {"snapkv:window=8", 20},
                              {"ada-snapkv:window=8", 20},
                              {"aperturekv", 30}});
    const trace::Reader reader = stored.reader();
    for (const CurveRuns& runs : choice_of(reader, over_budget).curves) {
        CAPTURE(runs.label);
        const auto what_if = find_what_if_for_curve(reader, 0, runs, over_budget);
        const auto curve = what_if_curve(reader, 0, runs.source, over_budget, by(what_if), std::nullopt);
        REQUIRE(curve.size() >= 15);
        CHECK(curve.back().x == PolicyTrace::n_tokens);
        CHECK(curve.back().kept.coverage == 1);
        CHECK(curve.back().kept.attention_kept == Approx(1).epsilon(1e-5));
        CHECK(static_cast<double>(curve.back().kept.bytes) == bytes_of_all_entries(reader, 0));
        std::set<double> places;
        for (const CurvePoint& point : curve) {
            CAPTURE(point.x);
            places.insert(point.x);
            const trace::RunRecord again = (*what_if)(runs.source.spec.values, static_cast<int64_t>(point.x));
            CHECK(point.kept.coverage == Approx(coverage_of(again)).epsilon(1e-12));
            CHECK(point.kept.attention_kept == Approx(mean_of(again.attention_kept)).epsilon(1e-6));
            CHECK(point.kept.n_entries == static_cast<int64_t>(again.kept_indices.size()));
            CHECK(std::isnan(point.recall));
        }
        CHECK(places.size() == curve.size());
        const auto recorded = reader.run_record(0, runs.runs[0]);
        const auto point = std::find_if(curve.begin(), curve.end(),
                                        [&](const auto& each) { return each.x == runs.source.recorded[0]; });
        REQUIRE(point != curve.end());
        CHECK(point->kept.coverage == coverage_of(recorded));
    }
}

TEST_CASE("curves: the smallest budget that reaches a share equals the result of trying all budgets", "[curves]") {
    const PolicyTrace stored({{"h2o", 40}, {"snapkv:window=8", 20}, {"aperturekv", 30}, {"streaming-llm", 20}});
    const trace::Reader reader = stored.reader();
    for (const CurveRuns& runs : choice_of(reader, over_budget).curves) {
        const auto what_if = find_what_if_for_curve(reader, 0, runs, over_budget);
        const auto curve = what_if_curve(reader, 0, runs.source, over_budget, by(what_if), std::nullopt);
        for (const double share : {0.3, 0.5, 0.9, 1.0}) {
            for (const CurveMeasure measure : {CurveMeasure::coverage, CurveMeasure::attention}) {
                CAPTURE(runs.label, share, curve_measure_name(measure));
                const auto found =
                    smallest_budget_reaching_share(reader, 0, runs.source, curve, measure, share, by(what_if), {});
                std::optional<int64_t> first;
                for (auto budget = static_cast<int64_t>(curve.front().x); budget <= PolicyTrace::n_tokens; ++budget) {
                    const KeptSummary kept =
                        summarize_kept_entries(reader, 0, (*what_if)(runs.source.spec.values, budget));
                    const double value = measure == CurveMeasure::coverage ? kept.coverage : kept.attention_kept;
                    if (!first && value >= share) first = budget;
                }
                CHECK(found == first);
            }
        }
        CHECK(
            !smallest_budget_reaching_share(reader, 0, runs.source, curve, CurveMeasure::bytes, 0.5, by(what_if), {}));
        CHECK(
            !smallest_budget_reaching_share(reader, 0, runs.source, curve, CurveMeasure::recall, 0.5, by(what_if), {}));
    }
}

TEST_CASE("curves: budgets that a policy rejects do not raise the smallest budget", "[curves]") {
    // 20 sinks and one entry for each of 3 layers are always kept: 24 is the least budget, but not a point of the
    // curve.
    const PolicyTrace stored({{"lacache:sinks=20", 30}});
    const trace::Reader reader = stored.reader();
    const CurveRuns runs = choice_of(reader, over_budget).curves.at(0);
    const auto what_if = find_what_if_for_curve(reader, 0, runs, over_budget);
    const auto curve = what_if_curve(reader, 0, runs.source, over_budget, by(what_if), std::nullopt);
    REQUIRE(curve.front().x > 24);
    CHECK_THROWS_AS((*what_if)(runs.source.spec.values, 23), std::invalid_argument);
    CHECK(smallest_budget_reaching_share(reader, 0, runs.source, curve, CurveMeasure::coverage, 0.3, by(what_if), {}) ==
          24);
}

TEST_CASE("curves: the least budget of LaCache in a model of 30 layers is 32", "[curves]") {
    trace::sample::Options deep;
    deep.n_layers = 30;  // as in the default model
    const PolicyTrace stored({{"lacache:sinks=1", 48}}, trace::sample::recipe, deep);
    const trace::Reader reader = stored.reader();
    const CurveRuns runs = choice_of(reader, over_budget).curves.at(0);
    const auto what_if = find_what_if_for_curve(reader, 0, runs, over_budget);
    const auto curve = what_if_curve(reader, 0, runs.source, over_budget, by(what_if), std::nullopt);
    REQUIRE(curve.front().x > 32);
    CHECK(smallest_budget_reaching_share(reader, 0, runs.source, curve, CurveMeasure::coverage, 0.02, by(what_if),
                                         {}) == 32);
}

TEST_CASE("curves: the curve of a renamed run has its new label", "[curves]") {
    const PolicyTrace stored({{"h2o", 40}, {"h2o", 20}, {"snapkv:window=8", 20}, {"pyramidkv:window=8", 20}});
    const auto labels_of = [&](const std::vector<std::string>& renames, const FigureOptions& options) {
        std::vector<trace::Reader> readers;
        readers.push_back(stored.reader());
        readers = rename_runs(readers, renames);
        const Figure figure = figure_definition("curves").make(readers.front(), options);
        std::vector<std::string> labels;
        for (const LegendEntry& entry : figure.legend)
            labels.push_back(entry.label.substr(0, entry.label.size() - entry.behind.size()));
        const Table numbers = figure_definition("curves").numbers(readers.front(), options);
        CHECK(std::get<kvscope::SharedText>(numbers.rows.front().cells.at(1)).string() == labels.front());
        return labels;
    };
    using Labels = std::vector<std::string>;
    CHECK(labels_of({"h2o=H2O", "pyramidkv=Pyramid"}, {}) == Labels{"H2O", "snapkv:window=8", "Pyramid:window=8"});
    CHECK(labels_of({"snapkv:window=8 @ 20=SnapKV, B = 20"}, {})[1] == "SnapKV, B = 20");
    FigureOptions over;
    over.own["over"] = "beta";
    CHECK(labels_of({"pyramidkv:window=8 @ 20=Pyramid"}, over) == Labels{"Pyramid"});
}

TEST_CASE("curves: parameters that do not change the scores have curves, and other parameters have none", "[curves]") {
    const PolicyTrace stored({{"pyramidkv:window=8,beta=4", 20}, {"pyramidkv:window=8", 20}, {"snapkv:window=8", 20}});
    const trace::Reader reader = stored.reader();
    const CurveChoice choice = choice_of(reader, "beta");
    REQUIRE(choice.curves.size() == 1);
    CHECK(choice.left_out.size() == 1);
    CHECK(choice.curves[0].source.recorded.size() == 2);
    const auto what_if = find_what_if_for_curve(reader, 0, choice.curves[0], "beta");
    const auto curve = what_if_curve(reader, 0, choice.curves[0].source, "beta", by(what_if), std::nullopt);
    CHECK(curve.size() > 10);
    for (const CurvePoint& point : curve) {
        CAPTURE(point.x);
        policies::ParameterValues values = choice.curves[0].source.spec.values;
        values.set("beta", std::to_string(point.x));
        CHECK(point.kept.coverage == coverage_of((*what_if)(values, 20)));
    }
    const CurveChoice kernels = choice_of(reader, "kernel");
    REQUIRE(!kernels.curves.empty());
    CHECK_THROWS_WITH(find_what_if_for_curve(reader, 0, kernels.curves.back(), "kernel"),
                      Contains("kernel cannot be changed without a new prefill"));
}

TEST_CASE("curves: recall equals the recall of the recorded run at its budget", "[curves]") {
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens}, {"h2o", 20}});
    const trace::Reader reader = stored.reader();
    const auto attention = AnswerAttention::read(reader, 0);
    REQUIRE(attention);
    const CurveRuns runs = choice_of(reader, over_budget).curves.at(0);
    const auto what_if = find_what_if_for_curve(reader, 0, runs, over_budget);
    const auto curve = what_if_curve(reader, 0, runs.source, over_budget, by(what_if), attention);
    const auto point = std::find_if(curve.begin(), curve.end(), [](const auto& each) { return each.x == 20; });
    REQUIRE(point != curve.end());
    CHECK(point->recall == Approx(attention->recall(reader.run_record(0, 1), 20)).epsilon(1e-12));
    CHECK(curve.back().recall == 1);
    for (const CurvePoint& each : curve) CHECK((each.recall >= 0 && each.recall <= 1));
}

TEST_CASE("curves: the figure contains each curve and names runs without one", "[curves]") {
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens}, {"h2o", 40}, {"pyramidkv:window=8", 20}});
    const trace::Reader reader = stored.reader();
    const FigureDefinition definition = figure_definition("curves");
    FigureOptions options;
    options.own["threshold"] = "50";
    const Figure figure = definition.make(reader, options);
    REQUIRE(figure.legend.size() == 2);
    CHECK_THAT(figure.legend[0].label, Contains("h2o: 50.0 % at "));
    CHECK("h2o" + figure.legend[0].behind == figure.legend[0].label);
    CHECK(figure.panels.at(0).x.scale == Scale::logarithmic);
    options.source = "nothing";
    CHECK_THROWS_AS(definition.make(reader, options), FigureError);
    options.source = "bytes";
    options.own["over"] = "beta";
    const Figure windows = definition.make(reader, options);
    REQUIRE(windows.legend.size() == 1);
    CHECK_THAT(windows.caption, Contains("Omitted") && Contains("h2o @ 40"));
    CHECK(definition.left_out(reader, options) == "h2o @ 40: the selection cannot be repeated at other values of beta");
    options.own.erase("over");
    CHECK(definition.left_out(reader, options).empty());
    options.own["over"] = "no_such";
    CHECK_THROWS_WITH(definition.make(reader, options), Contains("it has no numeric parameter 'no_such'"));
    options.own = {{"threshold", "many"}};
    CHECK_THROWS_WITH(definition.make(reader, options),
                      Contains("--threshold must be a number from 0.1 to 100, not 'many'"));
    CHECK_THROWS_AS(definition.check(reader, options), FigureError);
    options.own = {{"threshold", "101"}};
    CHECK_THROWS_AS(definition.check(reader, options), FigureError);
    options.own = {{"bins", "3"}};
    CHECK_THROWS_WITH(check_options(definition, options), Contains("curves does not use --bins; it uses --run"));
    CHECK(options_used_by_figure(definition, options).own.empty());
}

TEST_CASE("curves: runs of several traces without a curve are named with their trace", "[curves]") {
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens}, {"h2o", 40}, {"pyramidkv:window=8", 20}});
    const trace::Reader reader = stored.reader();
    FigureOptions options;
    options.own["over"] = "beta";
    const std::vector<TracePart> parts = {{&reader, options, "one"}, {&reader, options, "two"}};
    const Figure figure = make_figure(figure_definition("curves"), parts);
    CHECK_THAT(figure.caption, Contains("one: h2o @ 40, two: h2o @ 40."));
}

TEST_CASE("curves: the legend says which curve covers equal curves", "[curves]") {
    // CaM drops the entries that H2O drops, and merges their values into kept entries.
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens}, {"h2o", 40}, {"snapkv:window=8", 40}, {"cam", 40}});
    const trace::Reader reader = stored.reader();
    const Figure figure = figure_definition("curves").make(reader, {});
    REQUIRE(figure.legend.size() == 3);
    CHECK_THAT(figure.legend[0].label, Contains("h2o: ") && EndsWith(" (covered by cam)"));
    CHECK(figure.legend[0].label == "h2o" + figure.legend[0].behind);
    CHECK_THAT(figure.legend[1].label, !Contains("covered"));
    CHECK_THAT(figure.legend[2].label, !Contains("covered"));
}
