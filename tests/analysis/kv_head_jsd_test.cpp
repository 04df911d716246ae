#include "analysis/measures/kv_head_jsd.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace kvscope::analysis;

TEST_CASE("JSD of KV heads: averaged over groups, without the window, normalized") {
    // Four query heads, two KV heads, three tokens before a window of one, whose values must not matter.
    const std::vector<float> attention{0.2F, 0.0F, 0.0F, 9.0F,   //
                                       0.0F, 0.2F, 0.0F, 1.0F,   // group 0: (0.5, 0.5, 0)
                                       0.0F, 0.3F, 0.0F, 0.0F,   //
                                       0.0F, 0.0F, 0.3F, 0.0F};  // group 1: (0, 0.5, 0.5)
    const auto jsd = kv_head_jsd(attention, 4, 2, 1);
    REQUIRE(jsd.size() == 4);
    CHECK(jsd[0] == 0);
    CHECK(jsd[3] == 0);
    CHECK(jsd[1] == jsd[2]);
    CHECK(jsd[1] == Approx(0.5 * std::log(2.0)));  // half of the mass is shared
}

TEST_CASE("JSD of KV heads without groups and overlap is ln 2") {
    const auto jsd = kv_head_jsd(std::vector<float>{1, 0, 0, 0, 1, 0}, 2, 2, 1);
    CHECK(jsd[1] == Approx(std::log(2.0)));
}

TEST_CASE("JSD of KV heads: sizes that do not match are rejected") {
    CHECK_THROWS_AS(kv_head_jsd(std::vector<float>(6), 3, 2, 1), std::invalid_argument);
    CHECK_THROWS_AS(kv_head_jsd(std::vector<float>(7), 2, 2, 1), std::invalid_argument);
    CHECK_THROWS_AS(kv_head_jsd(std::vector<float>(6), 2, 2, 3), std::invalid_argument);
    CHECK_THROWS_AS(kv_head_jsd(std::vector<float>(6), 2, 0, 1), std::invalid_argument);
}
