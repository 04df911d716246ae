#include "analysis/measures/logit_divergence.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace kvscope::analysis;

TEST_CASE("logit divergence of four steps by hand") {
    const std::vector<float> kl{0.5F, 0.0F, 1.0F, 0.5F};
    const std::vector<uint8_t> agree{1, 1, 0, 1};
    const LogitDivergence d = logit_divergence(kl, agree);
    CHECK(d.n_steps == 4);
    CHECK(d.kl_mean == Approx(0.5));
    CHECK(d.kl_stderr == Approx(std::sqrt(0.5 / 3 / 4)));
    CHECK(d.kl_median == Approx(0.5));
    CHECK(d.kl_p95 == Approx(0.5 + 0.85 * 0.5));  // rank 2.85 of 0, 0.5, 0.5, 1
    CHECK(d.kl_max == 1);
    CHECK(d.agreement == 0.75);
    REQUIRE(d.first_disagreement);
    CHECK(*d.first_disagreement == 2);
}

TEST_CASE("logit divergence of one step, of no steps, and with a NaN") {
    const LogitDivergence one = logit_divergence(std::vector<float>{0.25F}, std::vector<uint8_t>{1});
    CHECK(one.kl_mean == 0.25);
    CHECK(one.kl_p95 == 0.25);
    CHECK(std::isnan(one.kl_stderr));
    CHECK_FALSE(one.first_disagreement);
    CHECK(std::isnan(logit_divergence({}, {}).kl_mean));
    const LogitDivergence unknown = logit_divergence(std::vector<float>{0.25F, NAN}, std::vector<uint8_t>{1, 1});
    CHECK(std::isnan(unknown.kl_mean));
    CHECK(std::isnan(unknown.kl_max));
    CHECK(unknown.agreement == 1);
    CHECK_THROWS_AS(logit_divergence(std::vector<float>{1}, {}), std::invalid_argument);
}
