#include "kernels/integer_shares.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>

using kvscope::kernels::integer_shares;
using Shares = std::vector<int64_t>;

namespace {

Shares shares(std::vector<double> weights, int64_t total, std::vector<int64_t> caps = {}) {
    return integer_shares(weights, total, caps);
}

}  // namespace

TEST_CASE("integer shares by hand", "[integer_shares]") {
    CHECK(shares({1, 1, 1}, 10) == Shares{4, 3, 3});        // ties to the lower index
    CHECK(shares({0.5, 0.3, 0.2}, 10) == Shares{5, 3, 2});  // exact quotas stay
    CHECK(shares({1.5, 2.7, 0.8}, 5) == Shares{1, 3, 1});   // largest fractions .8 and .7
    CHECK(shares({0, 4, 0}, 3) == Shares{0, 3, 0});
    CHECK(shares({2, 5}, 0) == Shares{0, 0});
    CHECK(shares({0, 0}, 0) == Shares{0, 0});
    CHECK(shares({}, 0) == Shares{});
}

TEST_CASE("rounding errors of the weights do not change integer shares", "[integer_shares]") {
    // 0.8 n + 0.2 c with n = 3, 8, 13 and c = 8: all fractions are 0, although their binary values differ.
    CHECK(shares({3 * 0.8 + 0.2 * 8, 8 * 0.8 + 0.2 * 8, 13 * 0.8 + 0.2 * 8}, 24) == Shares{4, 8, 12});
    // Equal fractions 0.4 at 2.4 and 7.4, 0.2 at 0.2: the lower index gets the slot.
    CHECK(shares({2.4 + 4e-16, 7.4 + 9e-16, 0.2}, 10) == Shares{3, 7, 0});
}

TEST_CASE("the excess over a cap goes to the others in proportion", "[integer_shares]") {
    // 60, 30, 10 of 100 with the first capped at 40: its excess of 20 is split 15 : 5.
    CHECK(shares({6, 3, 1}, 100, {40, 100, 100}) == Shares{40, 45, 15});
    // Then the second is full, too, and the last takes the rest.
    CHECK(shares({6, 3, 1}, 100, {40, 35, 100}) == Shares{40, 35, 25});
    // The others have no weight, so those below their caps share equally.
    CHECK(shares({1, 0, 0}, 9, {4, 9, 9}) == Shares{4, 3, 2});
    CHECK(shares({1, 2, 3}, 30, {10, 10, 10}) == Shares{10, 10, 10});
}

TEST_CASE("integer shares are exact and within one of the quota", "[integer_shares]") {
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        const size_t n = 1 + random() % 40;
        const int64_t total = static_cast<int64_t>(random() % 5000);
        std::vector<double> weights(n);
        for (double& weight : weights) weight = std::exponential_distribution<double>()(random);
        const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
        const Shares result = integer_shares(weights, total);
        CHECK(std::accumulate(result.begin(), result.end(), int64_t{0}) == total);
        for (size_t i = 0; i < n; ++i) CHECK(std::abs(result[i] - weights[i] / sum * total) < 1.0);

        std::vector<int64_t> caps(n);
        const int64_t each = total / static_cast<int64_t>(n) + 1;
        for (int64_t& cap : caps) cap = each + static_cast<int64_t>(random() % 10);
        const Shares capped = integer_shares(weights, total, caps);
        CHECK(std::accumulate(capped.begin(), capped.end(), int64_t{0}) == total);
        for (size_t i = 0; i < n; ++i) CHECK(capped[i] <= caps[i]);
    }
}

TEST_CASE("integer shares reject invalid arguments", "[integer_shares]") {
    CHECK_THROWS_AS(shares({1, -1}, 3), std::invalid_argument);
    CHECK_THROWS_AS(shares({1, NAN}, 3), std::invalid_argument);
    CHECK_THROWS_AS(shares({1, INFINITY}, 3), std::invalid_argument);
    CHECK_THROWS_AS(shares({0, 0}, 3), std::invalid_argument);
    CHECK_THROWS_AS(shares({1, 1}, -1), std::invalid_argument);
    CHECK_THROWS_AS(shares({1, 1}, 5, {2, 2}), std::invalid_argument);
    CHECK_THROWS_AS(shares({1, 1}, 3, {5}), std::invalid_argument);
}
