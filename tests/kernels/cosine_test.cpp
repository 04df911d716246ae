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

double plain_cosine(const float* a, const float* b, int64_t d) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t c = 0; c < d; ++c) {
        ab += static_cast<double>(a[c]) * b[c];
        aa += static_cast<double>(a[c]) * a[c];
        bb += static_cast<double>(b[c]) * b[c];
    }
    return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0.0;
}

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

TEST_CASE("adjacent cosine equals the plain loop in both types, layouts and at every SIMD level", "[cosine]") {
    std::mt19937 random(2);
    const int64_t heads = 3, n = 600, d = 48;
    // Tokens of all heads interleaved, as a projection leaves them.
    std::vector<float> f32 = normal(static_cast<size_t>(n * heads * d), random);
    for (int64_t c = 0; c < d; ++c) f32[5 * heads * d + c] = 0.0f;  // one zero vector
    std::vector<bf16> half;
    for (float& value : f32) {
        half.push_back(bf16_from_float(value));
        value = to_float(half.back());
    }
    double expected = 0.0;
    for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i + 1 < n; ++i) {
            expected += plain_cosine(f32.data() + (i * heads + h) * d, f32.data() + ((i + 1) * heads + h) * d, d);
        }
    }
    expected /= static_cast<double>(heads * (n - 1));
    for (SimdLevel level : {SimdLevel::generic, SimdLevel::avx2, SimdLevel::avx512}) {
        if (level > supported_simd_level()) continue;
        const ForcedSimdLevel forced(level);
        HeadVectors vectors{f32.data(), DType::f32, heads, n, d, d, heads * d};
        CHECK(adjacent_cosine(vectors) == Approx(expected).margin(1e-6));
        vectors.data = half.data();
        vectors.dtype = DType::bf16;
        CHECK(adjacent_cosine(vectors) == Approx(expected).margin(1e-6));
    }
    CHECK(std::isnan(adjacent_cosine({f32.data(), DType::f32, 1, 1, d, d, d})));
    CHECK_THROWS_AS(adjacent_cosine({f32.data(), DType::f16, 1, 2, d, d, d}), std::invalid_argument);
}

TEST_CASE("query diversification", "[diversify_queries]") {
    SECTION("by hand: the mean points along x, so only y grows") {
        const std::vector<float> queries{2, 1, 4, -1};
        std::vector<float> out(4);
        diversify_queries(queries.data(), 2, 2, 0.5, out.data());
        CHECK(out == std::vector<float>{2, 1.5f, 4, -1.5f});
    }
    SECTION("lambda 0 and a zero mean leave the queries alone") {
        const std::vector<float> queries{1, 2, -1, -2};
        std::vector<float> out(4);
        diversify_queries(queries.data(), 2, 2, 0.45, out.data());
        CHECK(out == queries);
        const std::vector<float> others{1, 2, 3, 5};
        diversify_queries(others.data(), 2, 2, 0.0, out.data());
        CHECK(out == others);
    }
    SECTION("the mean is kept and the queries become less alike") {
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
