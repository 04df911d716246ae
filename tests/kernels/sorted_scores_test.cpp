#include "kernels/sorted_scores.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/select_topk.h"

using namespace kvscope::kernels;

namespace {

/// Rows of n scores, NaN from n_prefix on: spread scores, many ties, and both signs with infinities.
template <class Score>
std::vector<Score> scores_of_kind(int kind, int64_t rows, int64_t n, int64_t n_prefix) {
    std::mt19937 random(static_cast<unsigned>(kind) + 3);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::vector<Score> scores(static_cast<size_t>(rows * n), std::numeric_limits<Score>::quiet_NaN());
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < n_prefix; ++i) {
            const double u = uniform(random);
            const double kinds[] = {std::exp(-20.0 * u), std::floor(4.0 * u),
                                    u < 0.05   ? -INFINITY
                                    : u > 0.95 ? INFINITY
                                               : u - 0.5,
                                    u < 0.5 ? -0.0 : 0.0};
            scores[static_cast<size_t>(row * n + i)] = static_cast<Score>(kinds[kind]);
        }
    }
    return scores;
}

}  // namespace

TEMPLATE_TEST_CASE("a ranking gives the results of top-k, for each row and for all together", "[ranking]", float,
                   double) {
    const int64_t rows = 3;
    for (const auto& [n, n_prefix] : {std::pair<int64_t, int64_t>{1, 1}, {70, 64}, {3000, 2990}, {40000, 40000}}) {
        for (int kind = 0; kind < 4; ++kind) {
            const auto scores = scores_of_kind<TestType>(kind, rows, n, n_prefix);
            const SortedScores<TestType> ranking(scores.data(), rows, n);
            REQUIRE(ranking.ends_at(n_prefix));
            CHECK(ranking.ends_at(n_prefix - 1) == false);
            for (const int64_t k : {int64_t{0}, int64_t{1}, n_prefix / 3, n_prefix}) {
                CAPTURE(n, kind, k);
                for (int64_t row = 0; row < rows; ++row) {
                    for (const int64_t looked_at : {n_prefix, n_prefix / 2}) {
                        if (k > looked_at) continue;
                        std::vector<uint32_t> expected(static_cast<size_t>(k)), found(static_cast<size_t>(k));
                        select_topk(scores.data() + row * n, looked_at, k, expected.data());
                        ranking.select(row, looked_at, k, found.data());
                        REQUIRE(found == expected);
                    }
                }
                std::vector<int64_t> expected(rows), found(rows);
                count_topk_by_row(scores.data(), rows, n_prefix, n, rows * k, expected.data());
                ranking.count(n_prefix, rows * k, found.data());
                REQUIRE(found == expected);
            }
        }
    }
}

TEMPLATE_TEST_CASE("a ranking reports the first NaN in the prefix", "[ranking]", float, double) {
    const TestType nan = std::numeric_limits<TestType>::quiet_NaN();
    const std::vector<TestType> scores{4, 2, nan, nan, 1, nan, 3, nan};
    const SortedScores<TestType> ranking(scores.data(), 2, 4);
    CHECK(ranking.find_nan(0, 2) == -1);
    CHECK(ranking.find_nan(0, 3) == 2);
    CHECK(ranking.find_nan(1, 4) == 1);
    CHECK_FALSE(ranking.ends_at(2));  // row 1 has a number after its first two
    uint32_t out[2];
    CHECK_THROWS_AS(ranking.select(1, 2, 1, out), NanScore);
    CHECK_THROWS_AS(ranking.select(0, 2, 3, out), std::invalid_argument);
    int64_t counts[2];
    try {
        ranking.count(2, 1, counts);
        FAIL("accepted a NaN");
    } catch (const NanScore& error) {
        CHECK(error.row == 1);
        CHECK(error.position == 1);
    }
}
