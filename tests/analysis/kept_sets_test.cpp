#include "analysis/measures/kept_sets.h"

#include <catch2/catch.hpp>

#include "tests/analysis/kept_example.h"

using namespace kvscope::analysis;

TEST_CASE("consistent kept sets are accepted") {
    CHECK_NOTHROW(check_kept_sets(test::by_hand().view()));
    CHECK_NOTHROW(check_kept_sets(test::OwnedSets(0, 0, 0, {}).view()));
    CHECK(test::by_hand().view().count(0, 0) == 3);
    CHECK(test::by_hand().view().row(1, 1)[0] == 2);
}

TEST_CASE("inconsistent kept sets are rejected, naming the row") {
    using Catch::Matchers::Contains;
    CHECK_THROWS_WITH(check_kept_sets(test::OwnedSets(1, 2, 6, {{0}, {3, 3}}).view()), Contains("layer 0, row 1"));
    CHECK_THROWS_WITH(check_kept_sets(test::OwnedSets(1, 2, 6, {{4, 1}, {3}}).view()), Contains("layer 0, row 0"));
    CHECK_THROWS_WITH(check_kept_sets(test::OwnedSets(1, 1, 6, {{6}}).view()), Contains("position 6"));
    CHECK_THROWS_WITH(check_kept_sets(test::OwnedSets(2, 2, 6, {{1}}).view()), Contains("need 5 offsets, found 2"));
    test::OwnedSets sets = test::by_hand();
    sets.offsets[1] = 9;
    CHECK_THROWS_WITH(check_kept_sets(sets.view()), Contains("do not ascend"));
    sets = test::by_hand();
    sets.offsets.back() = 6;
    CHECK_THROWS_WITH(check_kept_sets(sets.view()), Contains("0 to 7"));
}
