#include "kernels/cosine.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu_features.h"
#include "kernels/diversify_queries.h"

using namespace kvscope::kernels;

namespace {

std::vector<float> normal(size_t n, std::mt19937& random) {
    std::vector<float> values(n);
    for (float& value : values) value = std::normal_distribution<float>()(random);
    return values;
}

}  // namespace

TEST_CASE("cosine matrix by hand", "[cosine]") {
    const std::vector<float> vectors{1, 0, 3, 4, 0, 0, -2, 0};
    std::vector<float> out(16);
    cosine_matrix(vectors.data(), 4, 2, 2, out.data());
    CHECK(out == std::vector<float>{1, 0.6f, 0, -1, 0.6f, 1, 0, -0.6f, 0, 0, 1, 0, -1, -0.6f, 0, 1});
    CHECK(mean_off_diagonal(out.data(), 4) == Approx(2 * (0.6 - 1 - 0.6) / 12).margin(1e-8));
    CHECK(mean_off_diagonal(out.data(), 1) == 0.0);
}

TEST_CASE("dot equals the plain loop at every SIMD level", "[cosine]") {
    std::mt19937 random(5);
    for (const size_t n : {0, 1, 7, 16, 64, 1003}) {
        const std::vector<float> a = normal(n, random), b = normal(n, random);
        double expected = 0;
        for (size_t i = 0; i < n; ++i) expected += static_cast<double>(a[i]) * static_cast<double>(b[i]);
        for (const SimdLevel level : {SimdLevel::generic, SimdLevel::avx2, SimdLevel::avx512}) {
            if (level > supported_simd_level()) continue;
            const ForcedSimdLevel forced(level);
            CHECK(dot(a.data(), b.data(), static_cast<int64_t>(n)) == Approx(expected).margin(1e-12));
        }
    }
}

TEST_CASE("query diversification", "[diversify_queries]") {
    SECTION("by hand: the mean points along x, so only y grows") {
        const std::vector<float> queries{2, 1, 4, -1};
        std::vector<float> out(4);
        diversify_queries(queries.data(), 2, 2, 0.5, out.data());
        CHECK(out == std::vector<float>{2, 1.5f, 4, -1.5f});
    }
    SECTION("lambda 0 and a zero mean leave the queries unchanged") {
        const std::vector<float> queries{1, 2, -1, -2};
        std::vector<float> out(4);
        diversify_queries(queries.data(), 2, 2, 0.45, out.data());
        CHECK(out == queries);
        const std::vector<float> others{1, 2, 3, 5};
        diversify_queries(others.data(), 2, 2, 0.0, out.data());
        CHECK(out == others);
    }
    SECTION("the mean stays and the queries become less similar") {
        std::mt19937 random(4);
        const int64_t w = 8, d = 16;
        std::vector<float> queries = normal(w * d, random);
        for (int64_t i = 0; i < w; ++i) queries[i * d] += 5.0f;  // a shared component
        std::vector<float> out(queries.size()), before(w * w), after(w * w);
        diversify_queries(queries.data(), w, d, 0.45, out.data());
        for (int64_t c = 0; c < d; ++c) {
            double mean_before = 0, mean_after = 0;
            for (int64_t i = 0; i < w; ++i) {
                mean_before += queries[i * d + c];
                mean_after += out[i * d + c];
            }
            CHECK(mean_after == Approx(mean_before).margin(1e-4));
        }
        cosine_matrix(queries.data(), w, d, d, before.data());
        cosine_matrix(out.data(), w, d, d, after.data());
        CHECK(mean_off_diagonal(after.data(), w) < mean_off_diagonal(before.data(), w));
    }
}
