// LaCache's ladder, computed by hand.
#include <catch2/catch.hpp>
#include <random>

#include "tests/policies/hand_cache.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

Rows kept_in(int layer, int n_layers, int64_t n_tokens, int64_t budget, const std::string& policy) {
    RunContext context;
    context.shape = {n_layers, 2, 1, 8};
    context.n_tokens = n_tokens;
    context.budget = budget;
    const auto object = parse_policy(policy).create();
    object->begin(context);
    return object->select_from_scores(layer, {}).rows;
}

}  // namespace

TEST_CASE("lacache: one entry of each pair stays, alternating between layers, until the budget is met", "[lacache]") {
    // L = 4, S = 2: one entry of each run of 2 stays. With two sinks and four last entries, (2 3) (4 5) (6 7) lose one
    // each.
    CHECK(kept_in(0, 4, 12, 9, "lacache:span=2,sinks=2") == Rows{{0, 1, 2, 4, 6, 8, 9, 10, 11}});
    CHECK(kept_in(1, 4, 12, 9, "lacache:span=2,sinks=2") == Rows{{0, 1, 3, 5, 7, 8, 9, 10, 11}});
    CHECK(kept_in(1, 4, 12, 10, "lacache:span=2,sinks=2") == Rows{{0, 1, 3, 5, 6, 7, 8, 9, 10, 11}});
    // By default, there are four sinks (9 - 4 - 1): the runs are (4 5) (6 7), then (4 6) or (5 7).
    CHECK(kept_in(0, 4, 12, 9, "lacache:span=2") == Rows{{0, 1, 2, 3, 4, 8, 9, 10, 11}});
    CHECK(kept_in(1, 4, 12, 9, "lacache:span=2") == Rows{{0, 1, 2, 3, 7, 8, 9, 10, 11}});
    CHECK(kept_in(2, 4, 12, 9, "lacache:span=2") == kept_in(0, 4, 12, 9, "lacache:span=2"));
}

TEST_CASE("lacache: the last run is cut only as far as the budget needs, oldest entries first", "[lacache]") {
    // L = 4, S = 1: one entry of each run of 4 stays, depending on the layer. Without sinks, 12 - 4 = 8 entries form
    // two runs.
    CHECK(kept_in(0, 4, 12, 7, "lacache:span=1,sinks=0") == Rows{{0, 4, 7, 8, 9, 10, 11}});
    CHECK(kept_in(1, 4, 12, 7, "lacache:span=1,sinks=0") == Rows{{1, 5, 7, 8, 9, 10, 11}});
    CHECK(kept_in(3, 4, 12, 7, "lacache:span=1,sinks=0") == Rows{{3, 6, 7, 8, 9, 10, 11}});
    CHECK(kept_in(2, 4, 12, 11, "lacache:span=1,sinks=0") == Rows{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}});
}

TEST_CASE("lacache: overlapping rungs keep more of a run", "[lacache]") {
    // L = 4, S = 2, O = 1: two entries of each run of 3 stay, from the first or the second on.
    CHECK(kept_in(0, 4, 10, 8, "lacache:span=2,overlap=1,sinks=0") == Rows{{0, 1, 3, 4, 6, 7, 8, 9}});
    CHECK(kept_in(1, 4, 10, 8, "lacache:span=2,overlap=1,sinks=0") == Rows{{1, 2, 4, 5, 6, 7, 8, 9}});
    // An overlap of at least the span acts like span - 1.
    CHECK(kept_in(1, 4, 10, 8, "lacache:span=2,overlap=7,sinks=0") == Rows{{1, 2, 4, 5, 6, 7, 8, 9}});
}

TEST_CASE("lacache: with a single rung, the oldest entries are dropped", "[lacache]") {
    CHECK(kept_in(1, 4, 12, 8, "lacache:span=4,sinks=2") == Rows{{0, 1, 6, 7, 8, 9, 10, 11}});
    // Fewer entries are left than a run has.
    CHECK(kept_in(0, 4, 8, 6, "lacache:span=1,sinks=1") == Rows{{0, 3, 4, 5, 6, 7}});
}

TEST_CASE("lacache: by default, there are 128 sinks or fewer for small budgets", "[lacache]") {
    // Of 868 entries, every second one is dropped (434), and then every second of the oldest remaining ones (66).
    const auto many = kept_in(0, 4, 1000, 500, "lacache:span=2")[0];
    CHECK((many[127] == 127 && many[128] == 128 && many[129] == 132 && many[128 + 33] == 128 + 33 * 4));
    CHECK_THROWS_AS(kept_in(0, 4, 50, 4, "lacache"), BudgetError);
    CHECK(kept_in(0, 4, 50, 5, "lacache")[0].size() == 5);
    CHECK_THROWS_AS(kept_in(0, 4, 50, 9, "lacache:sinks=5"), BudgetError);
    CHECK(kept_in(0, 4, 50, 10, "lacache:sinks=5")[0].size() == 10);
    CHECK(kept_in(0, 4, 4, 4, "lacache:sinks=5")[0].size() == 4);
}

TEST_CASE("lacache: for any parameters, exactly the budget is kept, including sinks and last entries", "[lacache]") {
    std::mt19937 random(5);
    const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int round = 0; round < 2000; ++round) {
        const int n_layers = draw(1, 12), sinks = draw(0, 20), n = draw(sinks + n_layers + 2, 200);
        const int budget = draw(sinks + n_layers + 1, n);
        const std::string policy = "lacache:span=" + std::to_string(draw(1, 20)) +
                                   ",overlap=" + std::to_string(draw(0, 20)) + ",sinks=" + std::to_string(sinks);
        CAPTURE(policy, n_layers, n, budget);
        const auto row = kept_in(draw(0, n_layers - 1), n_layers, n, budget, policy)[0];
        REQUIRE(static_cast<int>(row.size()) == budget);
        for (int i = 0; i < sinks; ++i) REQUIRE(row[static_cast<size_t>(i)] == static_cast<uint32_t>(i));
        for (int i = 1; i <= n_layers; ++i)
            REQUIRE(row[row.size() - static_cast<size_t>(i)] == static_cast<uint32_t>(n - i));
    }
}
