#include "analysis/runs/run_style.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "analysis/drawing/policy_color.h"
#include "tests/analysis/color_distance.h"

using namespace kvscope::analysis;
using kvscope::trace::RunAttributes;

namespace {

RunAttributes run(const std::string& policy, int64_t budget, const std::string& parameters = "{}") {
    RunAttributes r;
    r.policy = policy;
    r.label = policy + " " + std::to_string(budget);
    r.budget = budget;
    r.budget_fraction = static_cast<double>(budget) / 1000;
    r.parameters_json = parameters;
    return r;
}

}  // namespace

TEST_CASE("a policy has a color, a budget has a dash, and full is black") {
    const std::vector<RunAttributes> runs{run("full", 1000), run("snapkv", 64), run("snapkv", 128), run("h2o", 64),
                                          run("h2o", 128)};
    const auto styles = run_styles(runs);
    CHECK(styles[0].color == Rgb{0, 0, 0});
    CHECK(styles[1].color == policy_color("snapkv"));
    CHECK(styles[2].color == styles[1].color);
    CHECK(styles[3].color == policy_color("h2o"));
    CHECK(styles[1].dash == Dash::dashed);
    CHECK(styles[2].dash == Dash::solid);
    CHECK(styles[3].dash == Dash::dashed);
    CHECK(styles[1].marker != styles[2].marker);
}

TEST_CASE("a what-if with a larger budget changes the look of no other run") {
    const std::vector<RunAttributes> recorded{run("full", 1000), run("snapkv", 64), run("snapkv", 128)};
    auto runs = recorded;
    runs.push_back(run("snapkv", 300));
    const auto styles = run_styles_of_traces({runs}, recorded).front();
    CHECK(styles[1].dash == Dash::dashed);
    CHECK(styles[2].dash == Dash::solid);
    CHECK(styles[3].dash == Dash::dotted);
}

TEST_CASE("a trace without runs takes no shade from the next trace") {
    const std::vector<RunAttributes> runs{run("full", 1000), run("snapkv", 64), run("snapkv", 128)};
    const auto styles = run_styles_of_traces({{}, runs});
    const auto alone = run_styles_of_traces({runs});
    for (size_t i = 0; i < runs.size(); ++i) {
        CHECK(styles[1][i].color == alone[0][i].color);
        CHECK(styles[1][i].dash == alone[0][i].dash);
    }
    CHECK_FALSE(run_styles_of_traces({runs, runs})[1][1].color == alone[0][1].color);
}

TEST_CASE("a policy with other parameters is another method") {
    const auto styles = run_styles({run("snapkv", 64), run("snapkv", 64, R"({"kernel":5})")});
    CHECK_FALSE(styles[0].color == styles[1].color);
}

TEST_CASE("a policy has its color in every trace, whatever other runs there are") {
    const auto forwards = run_styles({run("full", 1000), run("snapkv", 64), run("laq", 64), run("mine", 64)});
    const auto backwards = run_styles({run("mine", 128), run("laq", 32), run("k-vec", 32), run("snapkv", 32)});
    CHECK(forwards[1].color == backwards[3].color);
    CHECK(forwards[2].color == backwards[1].color);
    CHECK(forwards[3].color == backwards[0].color);
    CHECK(policy_color("mine") == forwards[3].color);
}

TEST_CASE("each of many methods has its own color, also for unknown policies") {
    std::vector<RunAttributes> runs;
    for (int i = 0; i < 12; ++i) runs.push_back(run("mine" + std::to_string(i), 64));
    for (int i = 0; i < 6; ++i) runs.push_back(run("snapkv", 64, std::to_string(i)));
    std::set<std::array<uint8_t, 3>> colors;
    for (const LineStyle& style : run_styles(runs)) colors.insert({style.color.r, style.color.g, style.color.b});
    CHECK(colors.size() == runs.size());
}

TEST_CASE("the distance of colors is CIEDE2000") {
    // Pairs by Sharma, Wu and Dalal.
    CHECK(test::ciede2000({50, 2.6772, -79.7751}, {50, 0, -82.7485}) == Approx(2.0425).margin(5e-5));
    CHECK(test::ciede2000({50, 2.5, 0}, {73, 25, -18}) == Approx(27.1492).margin(5e-5));
    CHECK(test::ciede2000({50, 2.5, 0}, {50, 0, -2.5}) == Approx(4.3065).margin(5e-5));
    CHECK(test::ciede2000({2.0776, 0.0795, -1.1350}, {0.9033, -0.0636, -0.5514}) == Approx(0.9082).margin(5e-5));
}

namespace {

/// Checks the distance between any two of these policies, and from each to the black of the full run.
void check_told_apart(const std::vector<const char*>& policies, double least, double least_without_red_and_green) {
    for (size_t i = 0; i < policies.size(); ++i) {
        const test::Triple color = test::as_triple(policy_color(policies[i]));
        for (size_t j = 0; j <= i; ++j) {
            const test::Triple other = j == i ? test::Triple{} : test::as_triple(policy_color(policies[j]));
            CAPTURE(policies[i], j == i ? "full" : policies[j]);
            CHECK(test::color_distance(color, other, test::Eyes::usual) >= least);
            CHECK(test::color_distance(color, other, test::Eyes::deuteranope) >= least_without_red_and_green);
            CHECK(test::color_distance(color, other, test::Eyes::protanope) >= least_without_red_and_green);
        }
    }
}

}  // namespace

TEST_CASE("the demo's policies have distinct colors, also for color-blind readers") {
    check_told_apart({"streaming-llm", "h2o", "snapkv", "pyramidkv", "ada-snapkv", "aperturekv", "k-vec", "dapq", "laq",
                      "gemfilter", "random", "oracle"},
                     20, 13);
}

TEST_CASE(
    "policies that do not store whole entries have distinct colors, also from the runs that are shown with them") {
    check_told_apart({"snapkv", "h2o", "random", "streaming-llm", "think", "kvslimmer", "asymkv", "echokv",
                      "echokv-hybrid", "palu", "commonkv", "minicache"},
                     15, 9.9);
}

TEST_CASE("shades of a policy's color are distinct from all other policies") {
    const std::vector<std::string> policies = {
        "streaming-llm", "h2o",       "snapkv",        "pyramidkv", "ada-snapkv",  "aperturekv", "k-vec",
        "dapq",          "laq",       "gemfilter",     "random",    "oracle",      "headkv",     "ada-pyramidkv",
        "lacache",       "longcache", "laq++",         "cam",       "llmlingua-2", "think",      "kvslimmer",
        "asymkv",        "echokv",    "echokv-hybrid", "palu",      "commonkv",    "minicache"};
    for (const auto& policy : policies) {
        const Rgb own = policy_color(policy);
        for (const Rgb shade : {policy_color(policy, Shade::paler), policy_color(policy, Shade::darker)}) {
            const auto seen = test::as_triple(shade);
            CAPTURE(policy, int{shade.r}, int{shade.g}, int{shade.b});
            CHECK(test::color_distance(seen, test::as_triple(own), test::Eyes::usual) >= 8);
            CHECK(test::color_distance(seen, test::Triple{}, test::Eyes::usual) >= 8);
            for (const auto& other : policies) {
                if (other == policy) continue;
                CAPTURE(other);
                CHECK(test::color_distance(seen, test::as_triple(policy_color(other)), test::Eyes::usual) >= 8);
            }
        }
    }
}

TEST_CASE("legend and curves agree for any number of policies and budgets, and no two budgets look alike") {
    const int n_policies = GENERATE(2, 7, 8, 12, 24);
    const int n_budgets = GENERATE(2, 5, 20);
    std::vector<RunAttributes> runs{run("full", 1000)};
    std::vector<int> shown;
    for (int policy = 0; policy < n_policies; ++policy) {
        for (int budget = 1; budget <= n_budgets; ++budget) {
            shown.push_back(static_cast<int>(runs.size()));
            runs.push_back(run("policy" + std::to_string(policy), 10 * budget));
        }
    }
    const auto styles = run_styles(runs);
    const auto legend = run_legend(runs, styles, shown);
    REQUIRE(legend.size() == static_cast<size_t>(n_policies + n_budgets));
    const auto entry = [&](const std::string& begin) {
        const auto found = std::find_if(legend.begin(), legend.end(),
                                        [&](const LegendEntry& each) { return each.label.starts_with(begin); });
        REQUIRE(found != legend.end());
        return found->style;
    };
    std::set<std::pair<Dash, Marker>> looks;
    for (const int i : shown) {
        const auto& style = styles[static_cast<size_t>(i)];
        const auto& attributes = runs[static_cast<size_t>(i)];
        const LineStyle of_budget = entry(std::to_string(attributes.budget) + " entries");
        if (of_budget.dash != style.dash || of_budget.marker != style.marker) FAIL(attributes.label);
        if (!(entry(attributes.policy).color == style.color)) FAIL(attributes.label);
        looks.emplace(style.dash, style.marker);
    }
    CHECK(looks.size() == static_cast<size_t>(n_budgets));
}

TEST_CASE("legend: policies and budgets are separate if there are several of each") {
    const std::vector<RunAttributes> runs{run("full", 1000), run("snapkv", 64), run("snapkv", 128), run("h2o", 64),
                                          run("h2o", 128)};
    const auto grouped = run_legend(runs, run_styles(runs), {1, 2, 3, 4});
    REQUIRE(grouped.size() == 4);
    CHECK(grouped[0].label == "snapkv");
    CHECK(grouped[1].label == "h2o");
    CHECK(grouped[2].label == "64 entries (6.4 %)");
    CHECK(grouped[2].style.dash == Dash::dashed);
    CHECK(grouped[3].style.dash == Dash::solid);
    const auto single = run_legend(runs, run_styles(runs), {1, 3});
    REQUIRE(single.size() == 2);
    CHECK(single[1].label == "h2o 64");
    CHECK(run_legend(runs, run_styles(runs), {0, 1, 2, 3, 4}).size() == 5);
}

TEST_CASE("legend: a policy is listed with its parameters") {
    std::vector<RunAttributes> runs{run("snapkv", 64), run("snapkv", 128), run("h2o", 64), run("h2o", 128)};
    for (auto& one : runs) {
        const std::string name = one.policy == "h2o" ? "h2o:recent=16" : one.policy;
        one.label = name + " @ " + std::to_string(one.budget);
    }
    const auto legend = run_legend(runs, run_styles(runs), {0, 1, 2, 3});
    REQUIRE(legend.size() == 4);
    CHECK(legend[0].label == "snapkv");
    CHECK(legend[1].label == "h2o:recent=16");
}

TEST_CASE("legend: two sets of parameters of one policy are listed by run") {
    const std::vector<RunAttributes> runs{run("snapkv", 64), run("snapkv", 128), run("snapkv", 64, "{1}"),
                                          run("snapkv", 128, "{1}")};
    CHECK(run_legend(runs, run_styles(runs), {0, 1, 2, 3}).size() == 4);
}
