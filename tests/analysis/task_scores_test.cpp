#include "analysis/task_scores.h"

#include <catch2/catch.hpp>

#include "analysis/figure_definition.h"

using namespace kvscope;
using namespace kvscope::analysis;

namespace {

trace::ResultRow row(int sample, const std::string& policy, int64_t budget, double score) {
    trace::ResultRow one;
    one.sample_id = std::to_string(sample);
    one.policy = policy;
    one.parameters_json = "{}";
    one.budget = budget;
    one.budget_fraction = 0.25;
    one.score = score;
    return one;
}

/// 60 samples: the full cache right in all but `full_wrong`, snapkv in every second at 64 and in all at 128.
std::vector<trace::ResultRow> results(int full_wrong, int random_right) {
    std::vector<trace::ResultRow> rows;
    for (int i = 0; i < 60; ++i) {
        rows.push_back(row(i, "full", 1000 + i, i >= full_wrong));
        rows.push_back(row(i, "snapkv", 64, i % 2));
        rows.push_back(row(i, "snapkv", 128, 1));
        rows.push_back(row(i, "random", 64, i < random_right));
    }
    return rows;
}

}  // namespace

TEST_CASE("a bootstrap interval holds the mean and narrows with the sample", "[task-scores]") {
    std::vector<double> few, many;
    for (int i = 0; i < 20; ++i) few.push_back(i % 4 == 0);
    for (int i = 0; i < 500; ++i) many.push_back(i % 4 == 0);
    const auto a = bootstrap_mean(few), b = bootstrap_mean(many);
    CHECK(a.mean == Approx(0.25));
    CHECK(b.mean == Approx(0.25));
    // The normal approximation: 1.96 sqrt(p (1 - p) / n) is 0.190 and 0.038.
    CHECK(a.low == Approx(0.25 - 0.19).margin(0.05));
    CHECK(a.high == Approx(0.25 + 0.19).margin(0.05));
    CHECK(b.low == Approx(0.25 - 0.038).margin(0.006));
    CHECK(b.high == Approx(0.25 + 0.038).margin(0.006));
    CHECK(bootstrap_mean(std::vector<double>(60, 1.0)).low == 1.0);
    CHECK_THROWS_AS(bootstrap_mean({}), std::invalid_argument);
}

TEST_CASE("scores are gathered by setting and budget, the full cache over all lengths", "[task-scores]") {
    const auto rows = results(3, 0);
    const Table table = task_scores(rows);
    REQUIRE(table.rows.size() == 4);
    CHECK(table.rows[0].control);
    CHECK(std::get<std::string>(table.rows[0].cells[1]) == "all");
    CHECK(std::get<int64_t>(table.rows[0].cells[2]) == 60);
    CHECK(std::get<double>(table.rows[0].cells[3]) == Approx(0.95));
    CHECK(std::get<double>(table.rows[1].cells[3]) == Approx(0.5));
    const Table wide = task_scores_by_budget(rows);
    REQUIRE(wide.rows.size() == 3);
    REQUIRE(wide.columns.size() == 3);
    CHECK(wide.columns[2].title == "128");
    CHECK(std::get<std::string>(wide.rows[1].cells[2]) == "100.0 [100.0, 100.0]");
    CHECK(std::holds_alternative<std::monostate>(wide.rows[2].cells[2]));
    CHECK_THROWS_AS(task_scores({}), FigureError);
}

TEST_CASE("failed runs are counted and not averaged", "[task-scores]") {
    auto rows = results(0, 0);
    rows[1].status = "failed";
    const Table table = task_scores(rows);
    CHECK(std::get<int64_t>(table.rows[1].cells[2]) == 59);
    CHECK(std::get<int64_t>(table.rows[1].cells[6]) == 1);
}

TEST_CASE("a table that means nothing says so", "[task-scores]") {
    using Catch::Matchers::Contains;
    using Catch::Matchers::StartsWith;
    CHECK_THAT(task_verdict(results(3, 2)), StartsWith("Usable: 60 samples, the full cache right in 95.0 %"));
    CHECK_THAT(task_verdict(results(10, 2)), StartsWith("Not usable") && Contains("83.3 %"));
    CHECK_THAT(task_verdict(results(0, 10)), StartsWith("Not usable") && Contains("random at 64 is right in 16.7 %"));
    auto few = results(0, 0);
    few.resize(40);
    CHECK_THAT(task_verdict(few), StartsWith("Not usable") && Contains("10 samples"));
}
