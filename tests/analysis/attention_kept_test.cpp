#include "analysis/measures/attention_kept.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/analysis/kept_example.h"

using namespace kvscope::analysis;

TEST_CASE("attention kept: share of each query head's attention on the entries of its KV head") {
    // One layer, two query heads that read one KV head, which keeps tokens 0 and 2.
    const test::OwnedSets sets(1, 1, 3, {{0, 2}});
    const std::vector<float> attention{0.5F, 0.25F, 0.25F, 0.0F, 3.0F, 1.0F};
    const auto kept = attention_kept(attention, 2, sets.view());
    REQUIRE(kept.size() == 2);
    CHECK(kept[0] == Approx(0.75));
    CHECK(kept[1] == Approx(0.25));
}

TEST_CASE("attention kept: NaN without any attention") {
    const test::OwnedSets sets(1, 1, 2, {{0}});
    CHECK(std::isnan(attention_kept(std::vector<float>{0, 0}, 1, sets.view())[0]));
}

TEST_CASE("attention kept: sizes that do not match are rejected") {
    const test::OwnedSets sets(1, 2, 3, {{0}, {1}});
    CHECK_THROWS_AS(attention_kept(std::vector<float>(9), 3, sets.view()), std::invalid_argument);
    CHECK_THROWS_AS(attention_kept(std::vector<float>(11), 4, sets.view()), std::invalid_argument);
}
