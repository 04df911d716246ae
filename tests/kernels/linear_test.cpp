#include "kernels/linear.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu_features.h"

using namespace kvscope::kernels;

namespace {

std::vector<SimdLevel> levels() {
    std::vector<SimdLevel> all;
    for (const auto level : {SimdLevel::generic, SimdLevel::avx2, SimdLevel::avx512, SimdLevel::avx512_bf16}) {
        if (level <= supported_simd_level()) all.push_back(level);
    }
    return all;
}

template <class T>
std::vector<T> random_values(size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<T> values(n);
    for (auto& value : values) value = from_float<T>(normal(random));
    return values;
}

template <class T>
void check(DType dtype, int64_t rows, int64_t in, int64_t out, bool with_bias) {
    const auto x = random_values<T>(static_cast<size_t>(rows * in), 1);
    const auto weight = random_values<T>(static_cast<size_t>(out * in), 2);
    const auto bias = random_values<float>(static_cast<size_t>(out), 3);
    std::vector<float> y(static_cast<size_t>(rows * out), -1);
    linear({.dtype = dtype,
            .n_rows = rows,
            .in = in,
            .out = out,
            .x = x.data(),
            .weight = weight.data(),
            .bias = with_bias ? bias.data() : nullptr,
            .y = y.data()});
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t o = 0; o < out; ++o) {
            double expected = with_bias ? bias[static_cast<size_t>(o)] : 0.0, size = std::abs(expected);
            for (int64_t i = 0; i < in; ++i) {
                const double product = double(to_float(x[static_cast<size_t>(r * in + i)])) *
                                       double(to_float(weight[static_cast<size_t>(o * in + i)]));
                expected += product;
                size += std::abs(product);
            }
            INFO(rows << " rows, " << in << " -> " << out << ", row " << r << ", output " << o);
            REQUIRE(std::abs(y[static_cast<size_t>(r * out + o)] - expected) <= 1e-6 * size + 1e-6);
        }
    }
}

}  // namespace

TEST_CASE("linear equals the plain sum at awkward sizes, at every instruction set") {
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        CAPTURE(name_of(level));
        for (const int64_t rows : {1, 2, 3, 5, 8, 11, 12, 13, 25}) {
            for (const int64_t in : {1, 15, 32, 33, 100}) {
                check<float>(DType::f32, rows, in, 67, true);
                check<bf16>(DType::bf16, rows, in, 67, false);
            }
        }
    }
}

TEST_CASE("a row of linear does not depend on the rows beside it") {
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        const int64_t in = 96, out = 130, rows = 29;
        const auto x = random_values<bf16>(rows * in, 4);
        const auto weight = random_values<bf16>(out * in, 5);
        std::vector<float> all(rows * out), one(out);
        linear({.n_rows = rows, .in = in, .out = out, .x = x.data(), .weight = weight.data(), .y = all.data()});
        for (int64_t r = 0; r < rows; ++r) {
            linear(
                {.n_rows = 1, .in = in, .out = out, .x = x.data() + r * in, .weight = weight.data(), .y = one.data()});
            for (int64_t o = 0; o < out; ++o)
                REQUIRE(one[static_cast<size_t>(o)] == all[static_cast<size_t>(r * out + o)]);
        }
    }
}

TEST_CASE("linear refuses what it cannot multiply") {
    float value = 0;
    CHECK_THROWS_AS(
        linear({.dtype = DType::f16, .n_rows = 1, .in = 1, .out = 1, .x = &value, .weight = &value, .y = &value}),
        std::invalid_argument);
    CHECK_THROWS_AS(linear({.n_rows = 1, .in = 0, .out = 1, .x = &value, .weight = &value, .y = &value}),
                    std::invalid_argument);
    CHECK_THROWS_AS(linear({.n_rows = 1, .in = 1, .out = 1, .x = nullptr, .weight = &value, .y = &value}),
                    std::invalid_argument);
}
