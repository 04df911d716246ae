#include "kernels/linear.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu_features.h"
#include "kernels/threads/team.h"
#include "tests/kernels/kernel_case.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

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

/// The product of rows [first, first + n_rows) of x.
template <class T, class Y>
std::vector<Y> product(const std::vector<T>& x, const std::vector<T>& weight, const std::vector<float>& bias,
                       int64_t in, int64_t first, int64_t n_rows) {
    const auto out = static_cast<int64_t>(bias.size());
    std::vector<Y> y(static_cast<size_t>(n_rows * out));
    linear({.dtype = dtype_of<T>,
            .n_rows = n_rows,
            .in = in,
            .out = out,
            .x = x.data() + first * in,
            .weight = weight.data(),
            .bias = bias.data(),
            .y = y.data(),
            .y_dtype = dtype_of<Y>});
    return y;
}

/// Computes rows alone, in groups of every kind, and all together, with one thread and with several.
template <class T, class Y>
void check_independence(int64_t in, int64_t out) {
    const int64_t rows = 450;
    const auto x = random_values<T>(static_cast<size_t>(rows * in), 4);
    const auto weight = random_values<T>(static_cast<size_t>(out * in), 5);
    const auto bias = random_values<float>(static_cast<size_t>(out), 6);
    const int threads_before = threads();
    set_threads(3);
    const auto all = product<T, Y>(x, weight, bias, in, 0, rows);
    for (const int threads : {1, 2}) {
        set_threads(threads);
        for (const int64_t together : {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 14, 17, 25, 26, 27, 49, 200}) {
            for (const int64_t first : {int64_t{0}, int64_t{37}, rows - together}) {
                const auto some = product<T, Y>(x, weight, bias, in, first, together);
                CAPTURE(in, out, threads, together, first);
                REQUIRE(
                    same_bits(some, std::vector<Y>(all.begin() + first * out, all.begin() + (first + together) * out)));
            }
        }
    }
    set_threads(threads_before);
}

}  // namespace

TEST_CASE("linear equals the plain sum at awkward sizes, at every instruction set") {
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        CAPTURE(name_of(level));
        for (const int64_t rows : {1, 2, 3, 5, 8, 11, 12, 13, 25, 210}) {
            for (const int64_t in : {1, 15, 32, 33, 100}) {
                check<float>(DType::f32, rows, in, 67, true);
                check<bf16>(DType::bf16, rows, in, 67, false);
            }
        }
    }
}

TEST_CASE("a row of linear depends neither on other rows nor on the threads, at every instruction set") {
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        CAPTURE(name_of(level));
        for (const auto& [in, out] : {std::pair{64, 96}, {75, 61}, {2500, 50}}) {  // the last one in three blocks
            check_independence<float, float>(in, out);
            check_independence<bf16, bf16>(in, out);
            check_independence<bf16, float>(in, out);
        }
    }
}

TEST_CASE("the bias of linear is added before the result is rounded") {
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        const std::vector<float> bias{0x1p-9f};
        const bf16 one = from_float<bf16>(1.0f);
        for (const int64_t rows : {1, 30}) {
            const std::vector<bf16> x(static_cast<size_t>(2 * rows), one);
            // 1 + 2^-8 is rounded down to 1; with the bias 3 2^-9 it is rounded up.
            const std::vector<bf16> weight{one, from_float<bf16>(0x1p-8f)};
            const auto y = product<bf16, bf16>(x, weight, bias, 2, 0, rows);
            for (const bf16 value : y) CHECK(to_float(value) == 1.0f + 0x1p-7f);
        }
    }
}

TEST_CASE("a NaN of linear stays in its row or its output") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        for (const int64_t rows : {5, 40}) {
            auto x = random_values<bf16>(static_cast<size_t>(rows * 40), 1), weight = random_values<bf16>(30 * 40, 2);
            x[3 * 40 + 39] = from_float<bf16>(nan);
            weight[7 * 40 + 5] = from_float<bf16>(nan);
            const auto y = product<bf16, float>(x, weight, std::vector<float>(30), 40, 0, rows);
            for (int64_t row = 0; row < rows; ++row)
                for (int64_t o = 0; o < 30; ++o)
                    CHECK(std::isnan(y[static_cast<size_t>(row * 30 + o)]) == (row == 3 || o == 7));
        }
    }
}

TEST_CASE("linear rejects invalid problems") {
    float value = 0;
    CHECK_THROWS_AS(
        linear({.dtype = DType::f16, .n_rows = 1, .in = 1, .out = 1, .x = &value, .weight = &value, .y = &value}),
        std::invalid_argument);
    CHECK_THROWS_AS(linear({.n_rows = 1, .in = 0, .out = 1, .x = &value, .weight = &value, .y = &value}),
                    std::invalid_argument);
    CHECK_THROWS_AS(linear({.n_rows = 1, .in = 1, .out = 1, .x = nullptr, .weight = &value, .y = &value}),
                    std::invalid_argument);
}
