#include "analysis/run_style.h"

#include <catch2/catch.hpp>

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

TEST_CASE("a policy has a colour, a budget a dash, full is black") {
    const std::vector<RunAttributes> runs{run("full", 1000), run("snapkv", 64), run("snapkv", 128), run("h2o", 64),
                                          run("h2o", 128)};
    const auto styles = run_styles(runs);
    CHECK(styles[0].color == Rgb{0, 0, 0});
    CHECK(styles[1].color == okabe_ito()[0]);
    CHECK(styles[2].color == styles[1].color);
    CHECK(styles[3].color == okabe_ito()[1]);
    CHECK(styles[1].dash == Dash::dashed);
    CHECK(styles[2].dash == Dash::solid);
    CHECK(styles[3].dash == Dash::dashed);
    CHECK(styles[1].marker != styles[2].marker);
}

TEST_CASE("a what-if of a larger budget leaves every other run's look as it was") {
    const std::vector<RunAttributes> recorded{run("full", 1000), run("snapkv", 64), run("snapkv", 128)};
    auto runs = recorded;
    runs.push_back(run("snapkv", 300));
    const auto styles = joint_run_styles({runs}, recorded).front();
    CHECK(styles[1].dash == Dash::dashed);
    CHECK(styles[2].dash == Dash::solid);
    CHECK(styles[3].dash == Dash::dotted);
}

TEST_CASE("the same policy with other parameters is another method") {
    const auto styles = run_styles({run("snapkv", 64), run("snapkv", 64, R"({"kernel":5})")});
    CHECK_FALSE(styles[0].color == styles[1].color);
}

TEST_CASE("a second round of colours is paler and has other markers") {
    std::vector<RunAttributes> runs;
    for (int i = 0; i < 14; ++i) runs.push_back(run("policy" + std::to_string(i), 64));
    const auto styles = run_styles(runs);
    CHECK_FALSE(styles[0].color == styles[7].color);
    CHECK(styles[0].color.r < styles[7].color.r + 1);
    CHECK(styles[0].color.b < styles[7].color.b);
    CHECK(styles[0].marker != styles[7].marker);
}

TEST_CASE("legend: policies and budgets apart where each has several") {
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

TEST_CASE("legend: two sets of parameters of one policy are listed run by run") {
    const std::vector<RunAttributes> runs{run("snapkv", 64), run("snapkv", 128), run("snapkv", 64, "{1}"),
                                          run("snapkv", 128, "{1}")};
    CHECK(run_legend(runs, run_styles(runs), {0, 1, 2, 3}).size() == 4);
}
