#include "app/papers/judgement.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "app/papers/paper.h"

namespace kvscope::papers {
namespace {

using analysis::Result;
using Outcome = Judgement::Outcome;

Result result(const std::string& setting, const std::string& budget, int sample, double kl, double score = NAN) {
    Result one;
    one.row.policy = setting.substr(0, setting.find(':'));
    one.row.status = "complete";
    one.row.kl = kl;
    one.row.score = score;
    one.row.subset = sample % 2 == 0 ? "even" : "odd";
    one.setting = setting;
    one.budget = budget;
    one.sample = fmt::format("{}", sample);
    return one;
}

/// Samples of two policies; the KL of k-vec is lower by `difference` on average.
std::vector<Result> results(int n, double difference) {
    std::vector<Result> all;
    for (int i = 0; i < n; ++i) {
        const double noise = 0.01 * (i % 5);
        all.push_back(result("full", "all", i, 0));
        all.push_back(result("snapkv", "64", i, 1 + noise));
        all.push_back(result("k-vec", "64", i, 1 - difference + 2 * noise - 0.02));
    }
    return all;
}

Finding finding(const std::string& of = "k-vec", const std::string& than = "snapkv") {
    Finding one;
    one.says = "K-VEC diverges less than SnapKV.";
    one.number = "kl";
    one.of = of;
    one.than = than;
    one.is_more = false;
    one.budgets = {"64"};
    return one;
}

Judgement judged(const Finding& finding, const std::vector<Result>& results) {
    const auto all = judge(finding, results);
    REQUIRE(all.size() == 1);
    return all.front();
}

TEST_CASE("A finding holds if the interval of the paired difference has the paper's sign") {
    const Judgement holds = judged(finding(), results(20, 0.5));
    CHECK(holds.outcome == Outcome::holds);
    CHECK(*holds.of == Approx(0.52));
    CHECK(*holds.than == Approx(1.02));
    CHECK(holds.difference->mean == Approx(-0.5));
    CHECK(judged(finding(), results(20, -0.5)).outcome == Outcome::does_not_hold);
    CHECK(judged(finding(), results(20, 0)).outcome == Outcome::does_not_hold);
    Finding more = finding();
    more.is_more = true;
    CHECK(judged(more, results(20, -0.5)).outcome == Outcome::holds);
    CHECK(judged(more, results(20, 0.5)).outcome == Outcome::does_not_hold);
}

TEST_CASE("Fewer prompts than 20 are not judged") {
    const Judgement few = judged(finding(), results(19, 0.5));
    CHECK(few.outcome == Outcome::is_unknown);
    CHECK(few.reason == "19 prompts of at least 20");
    CHECK(few.difference->mean == Approx(-0.5).margin(0.01));
}

TEST_CASE("Each budget of a finding has a judgement") {
    Finding both = finding();
    both.budgets = {"64", "128"};
    const auto all = judge(both, results(20, 0.5));
    REQUIRE(all.size() == 2);
    CHECK(all[0].outcome == Outcome::holds);
    CHECK(all[1].outcome == Outcome::is_unknown);
    CHECK(all[1].reason == "the trace has no run k-vec @ 128");
}

TEST_CASE("A name with parameters does not mean other parameters of the policy") {
    std::vector<Result> all = results(20, 0.5);
    for (int i = 0; i < 20; ++i) all.push_back(result("k-vec:window=8", "64", i, 9));
    CHECK(judged(finding(), all).difference->mean == Approx(-0.5));
    CHECK(*judged(finding("k-vec:window=8"), all).of == Approx(9));
}

TEST_CASE("Without a budget, only budgets of both policies are compared") {
    std::vector<Result> all = results(20, 0.5);
    for (int i = 0; i < 20; ++i) {
        all.push_back(result("snapkv", "24", i, 50));
        all.push_back(result("k-vec", "128", i, 0));
    }
    Finding any = finding();
    any.budgets.clear();
    CHECK(judged(any, all).difference->mean == Approx(-0.5));
}

TEST_CASE("A budget may be written in several ways") {
    std::vector<Result> all;
    for (int i = 0; i < 20; ++i) {
        all.push_back(result("snapkv", "20 %", i, 1));
        all.push_back(result("k-vec", "20 %", i, 0.5));
    }
    Finding share = finding();
    for (const char* text : {"20%", "20 %", "0.2"}) {
        share.budgets = {text};
        CHECK(judged(share, all).outcome == Outcome::holds);
    }
}

TEST_CASE("The full run has no budget") {
    const Judgement judgement = judged(finding("k-vec", "full"), results(20, 0.5));
    CHECK(judgement.outcome == Outcome::does_not_hold);
    CHECK(*judgement.than == 0);
}

TEST_CASE("A finding about a subset compares only its samples") {
    std::vector<Result> all = results(40, 0.5);
    for (Result& one : all)
        if (one.row.policy == "k-vec" && one.row.subset == "odd") one.row.kl = 7;
    Finding odd = finding();
    odd.where = {{"subset", "odd"}};
    CHECK(*judged(odd, all).of == Approx(7));
    CHECK(judged(odd, all).difference->n == 20);
    odd.where = {{"subset", "none"}};
    CHECK(judged(odd, all).outcome == Outcome::is_unknown);
    odd.where = {{"subzet", "odd"}};
    CHECK_THAT(judged(odd, all).reason, Catch::Contains("no setting 'subzet'"));
}

TEST_CASE("Scores are judged only if the full run is right") {
    for (const double of_full : {0.5, 1.0}) {
        std::vector<Result> all;
        for (int i = 0; i < 20; ++i) {
            all.push_back(result("full", "all", i, 0, i % 2 == 0 ? 1 : 2 * of_full - 1));
            all.push_back(result("snapkv", "64", i, 1, 0));
            all.push_back(result("k-vec", "64", i, 1, i % 4 == 0 ? 0 : 1));
        }
        Finding score = finding();
        score.number = "score";
        score.is_more = true;
        const Judgement judgement = judged(score, all);
        CHECK(judgement.outcome == (of_full == 1 ? Outcome::holds : Outcome::is_unknown));
        CHECK(judgement.difference->mean == Approx(0.75));
        if (of_full == 1) {  // differences that cancel within each context
            for (size_t i = 0; i < all.size(); ++i) {
                all[i].row.context_hash = std::to_string(i / 6);
                if (all[i].row.policy == "k-vec") all[i].row.score = (i / 3) % 2 == 0 ? 1 : 0;
                if (all[i].row.policy == "snapkv") all[i].row.score = (i / 3) % 2 == 0 ? 0 : 1;
            }
            CHECK_THAT(judged(score, all).reason, Catch::Contains("10 prompts of at least 20"));
        }
        for (Result& one : all)
            if (one.row.policy != "full") one.row.score = 0;
        CHECK(judged(score, all).outcome == Outcome::is_unknown);
    }
}

TEST_CASE("A finding that no number shows keeps its reason") {
    Finding cannot = finding();
    cannot.cannot = "Nothing measures it.";
    const auto all = judge(cannot, results(20, 0.5));
    REQUIRE(all.size() == 1);
    CHECK(all.front().outcome == Outcome::is_unknown);
    CHECK(all.front().reason == "Nothing measures it.");
}

}  // namespace
}  // namespace kvscope::papers
