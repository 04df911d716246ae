#include "kernels/select_topk.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

using namespace kvscope::kernels;

namespace {

/// All (row, position) ordered by score, then lower row, then lower position.
template <class Score>
std::vector<int64_t> ranking(const std::vector<Score>& scores) {
    std::vector<int64_t> order(scores.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
    return order;
}

template <class Score>
std::vector<uint32_t> expected_topk(const std::vector<Score>& scores, int64_t k) {
    const std::vector<int64_t> order = ranking(scores);
    std::vector<uint32_t> best(order.begin(), order.begin() + k);
    std::sort(best.begin(), best.end());
    return best;
}

template <class Score>
std::vector<uint32_t> topk(const std::vector<Score>& scores, int64_t k) {
    std::vector<uint32_t> best(static_cast<size_t>(k), 0xffffffffu);
    select_topk(scores.data(), static_cast<int64_t>(scores.size()), k, best.data());
    return best;
}

/// Difficult scores: spread, many ties, nearly equal, both signs with infinities.
template <class Score>
std::vector<Score> scores_of_kind(int kind, int64_t n, std::mt19937& random) {
    std::vector<Score> scores(static_cast<size_t>(n));
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    for (Score& score : scores) {
        const double u = uniform(random);
        if (kind == 0) score = static_cast<Score>(std::exp(-20.0 * u));
        if (kind == 1) score = static_cast<Score>(std::floor(4.0 * u));
        if (kind == 2) score = static_cast<Score>(1.0 + 1e-6 * u);
        if (kind == 3) score = static_cast<Score>(u < 0.05 ? -INFINITY : u > 0.95 ? INFINITY : u - 0.5);
        if (kind == 4) score = static_cast<Score>(0.25);
        if (kind == 5) score = static_cast<Score>(u < 0.5 ? -0.0 : 0.0);
    }
    return scores;
}

}  // namespace

TEMPLATE_TEST_CASE("top-k equals a stable sort", "[select_topk]", float, double) {
    std::mt19937 random(7);
    for (int64_t n : {1, 2, 3, 31, 2047, 2048, 2049, 5000}) {
        for (int kind = 0; kind < 6; ++kind) {
            const auto scores = scores_of_kind<TestType>(kind, n, random);
            for (int64_t k : {int64_t{0}, int64_t{1}, n / 3, n - 1, n}) {
                CAPTURE(n, kind, k);
                REQUIRE(topk(scores, k) == expected_topk(scores, k));
            }
        }
    }
}

TEMPLATE_TEST_CASE("joint top-k counts per row, ties to the lower row", "[select_topk]", float, double) {
    std::mt19937 random(8);
    const int64_t rows = 5, n = 301, stride = 320;
    for (int kind = 0; kind < 6; ++kind) {
        const auto scores = scores_of_kind<TestType>(kind, rows * n, random);
        std::vector<TestType> strided(rows * stride, std::numeric_limits<TestType>::quiet_NaN());  // never read
        for (int64_t r = 0; r < rows; ++r) std::copy_n(scores.begin() + r * n, n, strided.begin() + r * stride);
        const std::vector<int64_t> order = ranking(scores);
        for (int64_t k : {int64_t{0}, int64_t{1}, int64_t{64}, n, 2 * n + 7, rows * n}) {
            CAPTURE(kind, k);
            std::vector<int64_t> expected(rows, 0), counts(rows, -1);
            for (int64_t i = 0; i < k; ++i) ++expected[order[i] / n];
            count_topk_by_row(strided.data(), rows, n, stride, k, counts.data());
            REQUIRE(counts == expected);
        }
    }
}

TEST_CASE("ties by hand", "[select_topk]") {
    CHECK(topk<float>({3, 1, 3, 3, 2}, 2) == std::vector<uint32_t>{0, 2});
    CHECK(topk<float>({3, 1, 3, 3, 2}, 4) == std::vector<uint32_t>{0, 2, 3, 4});
    CHECK(topk<float>({-0.0f, 0.0f, -0.0f}, 1) == std::vector<uint32_t>{0});
    const std::vector<float> scores{1, 2, 2, 1};  // rows {1, 2}, {2, 1}
    std::vector<int64_t> counts(2);
    count_topk_by_row(scores.data(), 2, 2, 2, 3, counts.data());
    CHECK(counts == std::vector<int64_t>{2, 1});
}

TEMPLATE_TEST_CASE("a NaN is an error at any position and for any k", "[select_topk]", float, double) {
    const TestType nan = std::numeric_limits<TestType>::quiet_NaN();
    for (int64_t k : {0, 1, 3}) {
        try {
            topk<TestType>({1, nan, 3}, k);
            FAIL("accepted a NaN");
        } catch (const NanScore& error) {
            CHECK(error.position == 1);
            CHECK(error.row == 0);
        }
    }
    const std::vector<TestType> scores{1, 2, 3, nan};
    std::vector<int64_t> counts(2);
    try {
        count_topk_by_row(scores.data(), 2, 2, 2, 1, counts.data());
        FAIL("accepted a NaN");
    } catch (const NanScore& error) {
        CHECK(error.row == 1);
        CHECK(error.position == 1);
    }
}

TEST_CASE("an impossible count is an error", "[select_topk]") {
    const std::vector<float> scores{1, 2};
    uint32_t out[3];
    CHECK_THROWS_AS(select_topk(scores.data(), 2, 3, out), std::invalid_argument);
    CHECK_THROWS_AS(select_topk(scores.data(), 2, -1, out), std::invalid_argument);
}
