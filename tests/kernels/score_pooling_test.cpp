#include "kernels/score_pooling.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <vector>

using namespace kvscope::kernels;

namespace {

std::vector<float> pooled(Pooling kind, const std::vector<float>& in, int64_t width) {
    std::vector<float> out(in.size());
    pool(kind, in.data(), static_cast<int64_t>(in.size()), width, out.data());
    return out;
}

}  // namespace

TEST_CASE("pooling by hand: max ignores the padding, avg counts it as zeros", "[pool]") {
    const std::vector<float> in{-3, -1, -2, 6};
    CHECK(pooled(Pooling::max, in, 3) == std::vector<float>{-1, -1, 6, 6});
    CHECK(pooled(Pooling::avg, in, 3) == std::vector<float>{-4.0f / 3, -2, 1, 4.0f / 3});
    CHECK(pooled(Pooling::none, in, 3) == in);
    CHECK(pooled(Pooling::max, in, 1) == in);
    CHECK(pooled(Pooling::avg, in, 1) == in);
    CHECK(pooled(Pooling::max, {5}, 7) == std::vector<float>{5});
    CHECK(pooled(Pooling::avg, {7}, 7) == std::vector<float>{1});
    CHECK(pooled(Pooling::max, {}, 7).empty());
}

TEST_CASE("pooling equals the plain loop at every length and width", "[pool]") {
    std::mt19937 random(5);
    for (int64_t n : {1, 2, 3, 7, 8, 20, 61}) {
        std::vector<float> in(static_cast<size_t>(n));
        for (float& value : in) value = std::normal_distribution<float>()(random);
        for (int64_t width : {1, 3, 5, 7, 9, 21, 63, 129}) {
            std::vector<float> largest, average;
            for (int64_t i = 0; i < n; ++i) {
                const int64_t first = std::max<int64_t>(0, i - width / 2), last = std::min(n - 1, i + width / 2);
                largest.push_back(*std::max_element(in.begin() + first, in.begin() + last + 1));
                double sum = 0.0;
                for (int64_t j = first; j <= last; ++j) sum += in[j];
                average.push_back(static_cast<float>(sum / width));
            }
            CAPTURE(n, width);
            CHECK(pooled(Pooling::max, in, width) == largest);
            CHECK(pooled(Pooling::avg, in, width) == average);
        }
    }
}

TEST_CASE("non-negative numbers are pooled like others, at every length and width", "[pool]") {
    std::mt19937 random(6);
    for (int64_t n : {1, 2, 17, 2047, 2048, 2050, 5000}) {
        std::vector<float> in(static_cast<size_t>(n));
        for (float& value : in) value = std::uniform_real_distribution<float>(0.0f, 1.0f)(random);
        in[static_cast<size_t>(n / 2)] = std::numeric_limits<float>::infinity();
        std::vector<float> below(in);  // a number below 0 selects the other method
        below.push_back(-1.0f);
        for (int64_t width : {1, 3, 7, 31, 33}) {
            CAPTURE(n, width);
            auto expected = pooled(Pooling::max, below, width);
            expected.pop_back();
            CHECK(pooled(Pooling::max, in, width) == expected);
        }
    }
}

TEST_CASE("an even or non-positive width is rejected", "[pool]") {
    CHECK_THROWS_AS(pooled(Pooling::max, {1, 2}, 2), std::invalid_argument);
    CHECK_THROWS_AS(pooled(Pooling::avg, {1, 2}, 0), std::invalid_argument);
}
