#include "analysis/measures/head_clustering.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <stdexcept>

using kvscope::analysis::order_heads_by_similarity;

namespace {

/// Returns the distances of heads on a line as divergences.
std::vector<float> distances(const std::vector<float>& places) {
    std::vector<float> matrix;
    for (const float a : places) {
        for (const float b : places) matrix.push_back(std::abs(a - b));
    }
    return matrix;
}

}  // namespace

TEST_CASE("heads on a line are returned in the order of the line", "[head-order]") {
    const std::vector<float> places = {5.1F, 0.0F, 9.0F, 5.0F, 0.3F, 9.6F};
    const auto order = order_heads_by_similarity(distances(places), places.size());
    CHECK(order == std::vector<size_t>{1, 4, 3, 0, 2, 5});
}

TEST_CASE("two groups do not mix, and equal distances keep the order of the heads", "[head-order]") {
    std::vector<float> matrix(16, 1.0F);
    for (size_t i = 0; i < 4; ++i) {
        for (size_t j = 0; j < 4; ++j) {
            if (i % 2 == j % 2) matrix[i * 4 + j] = 0.0F;
        }
    }
    CHECK(order_heads_by_similarity(matrix, 4) == std::vector<size_t>{0, 2, 1, 3});
    CHECK(order_heads_by_similarity(std::vector<float>(9, 0.5F), 3) == std::vector<size_t>{0, 1, 2});
}

TEST_CASE("heads without a divergence come last", "[head-order]") {
    std::vector<float> matrix = distances({0, 1, 2, 0.1F});
    for (size_t i = 0; i < 4; ++i) matrix[1 * 4 + i] = matrix[i * 4 + 1] = std::nanf("");
    const auto order = order_heads_by_similarity(matrix, 4);
    CHECK(order.back() == 1);
    CHECK(order == std::vector<size_t>{0, 3, 2, 1});
    CHECK(order_heads_by_similarity(std::vector<float>(4, std::nanf("")), 2) == std::vector<size_t>{0, 1});
    CHECK(order_heads_by_similarity({}, 0).empty());
    CHECK_THROWS_AS(order_heads_by_similarity(matrix, 3), std::invalid_argument);
}
