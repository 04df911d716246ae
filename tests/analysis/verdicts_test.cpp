#include "analysis/results/verdicts.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace kvscope;
using namespace kvscope::analysis;
using Catch::Matchers::Contains;

namespace {

/// A run of a sample of 100 tokens.
trace::ResultRow run(const std::string& policy, int64_t budget, double kept_share, double bytes,
                     const std::string& prediction) {
    trace::ResultRow row;
    row.sample_id = "sample";
    row.policy = policy;
    row.parameters_json = "{}";
    row.budget = budget;
    row.requested_budget = std::to_string(budget);
    row.budget_fraction = static_cast<double>(budget) / 100;
    row.kept_share = kept_share;
    row.bytes = bytes;
    row.prediction = prediction;
    row.score = NAN;
    return row;
}

std::vector<std::string> of(std::vector<trace::ResultRow> rows) {
    rows.insert(rows.begin(), run("full", 100, 1, 1000, "a"));
    return verdicts(group_results_by_setting_and_budget(rows));
}

}  // namespace

TEST_CASE("runs that keep their budgets and give other answers need no remark", "[verdicts]") {
    CHECK(of({run("snapkv", 20, 0.2, 200, "b"), run("h2o", 20, 0.208, 204, "b")}).empty());
}

TEST_CASE("budgets that are not met are named with what is held", "[verdicts]") {
    CHECK(of({run("snapkv", 20, 0.3, 300, "b"), run("h2o", 20, 0.1, 100, "b")}) ==
          std::vector<std::string>{
              "Budgets not met: snapkv @ 20 keeps 30.0 entries per head; h2o @ 20 keeps 10.0 entries per head."});
    CHECK(of({run("palu", 50, 1, 650, "b")}) ==
          std::vector<std::string>{"Budgets not met: palu @ bytes of 50 holds 65.0 % of full's bytes."});
    CHECK(of({run("palu", 50, 1, 510, "b")}).empty());
}

TEST_CASE("runs that save no bytes, or answer as the full run does, are named", "[verdicts]") {
    CHECK(of({run("snapkv", 20, 0.2, 1010, "b")}) ==
          std::vector<std::string>{"No fewer bytes than full: snapkv @ 20 holds 101.0 %."});
    CHECK(of({run("snapkv", 20, 0.2, 200, "a"), run("h2o", 20, 0.2, 200, "c")}) ==
          std::vector<std::string>{"The same answers as full: snapkv @ 20 (n = 1)."});
    CHECK(of({run("snapkv", 100, 1, 1000, "a")}) ==
          std::vector<std::string>{
              "Nothing is dropped from a prompt with no more tokens than the budget: 1 of 1 samples at 100."});
}

TEST_CASE("ties at the cut-off are named from 5 % of the heads on", "[verdicts]") {
    auto tied = run("snapkv", 20, 0.2, 200, "b"), hardly = run("h2o", 20, 0.2, 200, "b");
    tied.tied_heads = 0.071;
    hardly.tied_heads = 0.04;
    CHECK(of({tied, hardly}) ==
          std::vector<std::string>{
              "Equal scores at the cut-off, so that ties decide what is kept: snapkv @ 20 in 7 % of heads."});
}

TEST_CASE("failed runs and unknown bytes need no remark, and long lists are cut", "[verdicts]") {
    auto failed = run("snapkv", 20, 0.9, 900, "a");
    failed.status = "failed: no memory";
    CHECK(of({failed, run("h2o", 20, 0.2, NAN, "b")}).empty());
    std::vector<trace::ResultRow> many;
    for (int64_t budget = 10; budget < 18; ++budget) many.push_back(run("snapkv", budget, 0.5, 500, "b"));
    REQUIRE(of(many).size() == 1);
    CHECK_THAT(of(many)[0], Contains("snapkv @ 15") && !Contains("snapkv @ 16") && Contains(" and 2 more."));
}
