#include "kernels/adjacent_outer_products.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu_features.h"
#include "kernels/threads/team.h"

using namespace kvscope::kernels;

namespace {

constexpr int64_t n_heads = 3;

/// (n, heads, d), tokens of all heads interleaved, like a projection's output. All numbers are exact in bf16.
std::vector<float> rows_of(int64_t n, int64_t d) {
    std::mt19937 random(static_cast<uint32_t>(n + d));
    std::vector<float> values(static_cast<size_t>(n * n_heads * d));
    for (float& value : values) value = to_float(bf16_from_float(0.3f + std::normal_distribution<float>()(random)));
    return values;
}

std::vector<bf16> halves_of(const std::vector<float>& values) {
    std::vector<bf16> halves;
    for (const float value : values) halves.push_back(bf16_from_float(value));
    return halves;
}

/// sum_i (e_i . v)(e_{i+1} . v) of a head, where e_i are the rows divided by their lengths.
double contribution(const std::vector<float>& rows, int64_t n, int64_t d, int64_t head, const float* v) {
    double sum = 0, before = 0;
    for (int64_t i = 0; i < n; ++i) {
        const float* row = rows.data() + (i * n_heads + head) * d;
        double dot = 0, square = 0;
        for (int64_t c = 0; c < d; ++c) {
            dot += static_cast<double>(row[c]) * static_cast<double>(v[c]);
            square += static_cast<double>(row[c]) * static_cast<double>(row[c]);
        }
        const double now = square > 0 ? dot / std::sqrt(square) : 0;
        if (i > 0) sum += before * now;
        before = now;
    }
    return sum;
}

std::vector<double> sums_of(AdjacentOuterProducts problem) {
    std::vector<double> sums(static_cast<size_t>(problem.n_heads * problem.d * problem.d));
    problem.sums = sums.data();
    add_adjacent_outer_products(problem);
    return sums;
}

void check_forms(const std::vector<double>& sums, const std::vector<float>& rows, int64_t n, int64_t d) {
    std::mt19937 random(7);
    std::vector<float> vectors(static_cast<size_t>(4 * d));
    for (float& value : vectors) value = std::normal_distribution<float>()(random) / std::sqrt(static_cast<float>(d));
    for (int64_t head = 0; head < n_heads; ++head) {
        CAPTURE(n, d, head);
        double forms[4];
        quadratic_forms(sums.data() + head * d * d, vectors.data(), 4, d, forms);
        for (int64_t i = 0; i < 4; ++i) {
            const double expected = contribution(rows, n, d, head, vectors.data() + i * d);
            CHECK(forms[i] == Approx(expected).margin(2e-7 * static_cast<double>(n)));
        }
        double trace = 0, cosines = 0;
        std::vector<float> axis(static_cast<size_t>(d));
        for (int64_t c = 0; c < d; ++c) {
            trace += sums[static_cast<size_t>((head * d + c) * d + c)];
            std::fill(axis.begin(), axis.end(), 0.0f);
            axis[static_cast<size_t>(c)] = 1.0f;
            cosines += contribution(rows, n, d, head, axis.data());
        }
        CHECK(trace == Approx(cosines).margin(2e-7 * static_cast<double>(n)));
    }
}

}  // namespace

TEST_CASE("adjacent products give the quadratic forms of the plain loop, in both types and at every SIMD level",
          "[neighbours]") {
    // Head sizes with whole and partial vectors; numbers of tokens around the size of a group.
    const auto [n, d] = GENERATE(std::pair<int64_t, int64_t>(2, 64), std::pair<int64_t, int64_t>(3, 16),
                                 std::pair<int64_t, int64_t>(65, 80), std::pair<int64_t, int64_t>(66, 10),
                                 std::pair<int64_t, int64_t>(300, 128), std::pair<int64_t, int64_t>(129, 3));
    std::vector<float> rows = rows_of(n, d);
    if (n > 10) std::fill_n(rows.begin() + 5 * n_heads * d, d, 0.0f);  // a zero vector
    const std::vector<bf16> halves = halves_of(rows);
    for (const SimdLevel level : {SimdLevel::generic, SimdLevel::avx2, SimdLevel::avx512, SimdLevel::avx512_bf16}) {
        if (level > supported_simd_level()) continue;
        const ForcedSimdLevel forced(level);
        CAPTURE(name_of(level));
        AdjacentOuterProducts problem{DType::f32, n_heads, n, d, d, n_heads * d, rows.data()};
        check_forms(sums_of(problem), rows, n, d);
        problem.dtype = DType::bf16;
        problem.vectors = halves.data();
        check_forms(sums_of(problem), rows, n, d);
    }
}

TEST_CASE("adjacent products continue after earlier tokens", "[neighbours]") {
    const int64_t n = 100, d = 64, width = n_heads * d;
    const std::vector<float> rows = rows_of(n, d);
    std::vector<double> sums(static_cast<size_t>(n_heads * d * d));
    for (const auto& [first, count] : {std::pair<int64_t, int64_t>(0, 1), {1, 1}, {2, 60}, {62, 38}})
        add_adjacent_outer_products({DType::f32, n_heads, count, d, d, width, rows.data() + first * width,
                                     first > 0 ? rows.data() + (first - 1) * width : nullptr, sums.data()});
    check_forms(sums, rows, n, d);
}

TEST_CASE("adjacent products are the same with any number of threads", "[neighbours]") {
    const std::vector<float> rows = rows_of(200, 64);
    const AdjacentOuterProducts problem{DType::f32, n_heads, 200, 64, 64, n_heads * 64, rows.data()};
    const int before = threads();
    set_threads(1);
    const std::vector<double> alone = sums_of(problem);
    for (const int threads : {2, 5}) {
        set_threads(threads);
        CHECK(sums_of(problem) == alone);
    }
    set_threads(before);
}

TEST_CASE("a vector with a NaN makes its head's products NaN, and no other's", "[neighbours]") {
    std::vector<float> rows = rows_of(70, 16);
    rows[static_cast<size_t>((40 * n_heads + 1) * 16 + 3)] = std::nanf("");
    const auto sums = sums_of({DType::f32, n_heads, 70, 16, 16, n_heads * 16, rows.data()});
    const auto is_nan = [](double x) { return std::isnan(x); };
    CHECK(std::all_of(sums.begin() + 256, sums.begin() + 512, is_nan));
    CHECK(std::none_of(sums.begin(), sums.begin() + 256, is_nan));
    CHECK(std::none_of(sums.begin() + 512, sums.end(), is_nan));
}

TEST_CASE("adjacent products reject invalid problems", "[neighbours]") {
    const std::vector<float> rows(32);
    std::vector<double> sums(256);
    CHECK_THROWS_AS(add_adjacent_outer_products({DType::f16, 1, 2, 16, 16, 16, rows.data(), nullptr, sums.data()}),
                    std::invalid_argument);
    CHECK_THROWS_AS(add_adjacent_outer_products({DType::f32, 1, -1, 16, 16, 16, rows.data(), nullptr, sums.data()}),
                    std::invalid_argument);
    CHECK_THROWS_AS(add_adjacent_outer_products({DType::f32, 1, 2, 16, 16, 16, nullptr, nullptr, sums.data()}),
                    std::invalid_argument);
    add_adjacent_outer_products({DType::f32, 1, 1, 16, 16, 16, rows.data(), nullptr, sums.data()});
    CHECK(std::all_of(sums.begin(), sums.end(), [](double x) { return x == 0; }));
}
