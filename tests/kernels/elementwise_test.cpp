#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/swiglu.h"
#include "tests/kernels/kernel_case.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

constexpr float epsilon = 1e-5f;

/// rms_norm of one vector that starts at `at` in x.
template <class X>
std::vector<double> normalised(const std::vector<X>& x, int64_t at, int64_t dim, const std::vector<float>& weight) {
    double sum = 0;
    for (int64_t c = 0; c < dim; ++c) sum += value(x, at + c) * value(x, at + c);
    const double factor = 1.0 / std::sqrt(sum / static_cast<double>(dim) + static_cast<double>(epsilon));
    std::vector<double> out;
    for (int64_t c = 0; c < dim; ++c) out.push_back(value(x, at + c) * factor * value(weight, c));
    return out;
}

template <class T>
bool near(double got, double expected, double size = 0) {
    return std::abs(got - expected) <= (rounding<T> + 1e-6) * std::max(std::abs(expected), size) + 1e-12;
}

template <class X, class Out>
void check_rms_norm(int64_t rows, int64_t heads, int64_t dim, int64_t padding) {
    INFO(name_of(dtype_of<X>) << " to " << name_of(dtype_of<Out>) << " rows=" << rows << " heads=" << heads
                              << " dim=" << dim);
    const int64_t stride = heads * dim + padding;
    const auto x = random_values<X>(static_cast<size_t>(rows * stride), 1);
    const auto weight = random_values<float>(static_cast<size_t>(dim), 2);
    std::vector<Out> out(static_cast<size_t>(rows * stride), from_float<Out>(9.0f));
    rms_norm({.n_rows = rows,
              .heads = heads,
              .dim = dim,
              .eps = epsilon,
              .x = x.data(),
              .x_dtype = dtype_of<X>,
              .x_stride = stride,
              .weight = weight.data(),
              .out = out.data(),
              .out_dtype = dtype_of<Out>,
              .out_stride = stride});
    bool right = true, untouched = true;
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t h = 0; h < heads; ++h) {
            const auto expected = normalised(x, r * stride + h * dim, dim, weight);
            for (int64_t c = 0; c < dim; ++c)
                right = right && near<Out>(value(out, r * stride + h * dim + c), expected[static_cast<size_t>(c)]);
        }
        for (int64_t c = heads * dim; c < stride; ++c) untouched = untouched && value(out, r * stride + c) == 9.0;
    }
    CHECK(right);
    CHECK(untouched);
}

}  // namespace

TEST_CASE("rms_norm equals a double loop") {
    for (const SimdLevel level : levels()) {
        INFO(name_of(level));
        const ForcedSimdLevel forced(level);
        for (const int64_t dim : {1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 576, 2047}) {
            check_rms_norm<float, float>(3, 1, dim, 0);
            check_rms_norm<float, bf16>(2, 1, dim, 5);
            check_rms_norm<bf16, float>(1, 3, dim, 0);
            check_rms_norm<bf16, bf16>(2, 4, dim, 7);
        }
        check_rms_norm<float, bf16>(300, 1, 576, 0);  // large enough for several threads
    }
}

TEST_CASE("rms_norm in place and by hand") {
    std::vector<float> x = {3, 4};
    const std::vector<float> weight = {1, 2};
    rms_norm({.n_rows = 1, .dim = 2, .eps = 0, .x = x.data(), .weight = weight.data(), .out = x.data()});
    CHECK(x[0] == Approx(3 / std::sqrt(12.5)));
    CHECK(x[1] == Approx(8 / std::sqrt(12.5)));
}

TEMPLATE_TEST_CASE("add_rms_norm adds, then normalizes", "", float, bf16) {
    for (const SimdLevel level : levels())
        for (const int64_t dim : {1, 16, 33, 576}) {
            INFO(name_of(level) << " dim=" << dim);
            const ForcedSimdLevel forced(level);
            const int64_t rows = 5;
            const auto before = random_values<float>(static_cast<size_t>(rows * dim), 1);
            const auto delta = random_values<TestType>(static_cast<size_t>(rows * dim), 2);
            const auto weight = random_values<float>(static_cast<size_t>(dim), 3);
            auto residual = before;
            std::vector<TestType> out(delta.size());
            AddRmsNorm problem{.n_rows = rows,
                               .dim = dim,
                               .eps = epsilon,
                               .residual = residual.data(),
                               .delta = delta.data(),
                               .delta_dtype = dtype_of<TestType>,
                               .weight = weight.data(),
                               .out = out.data(),
                               .out_dtype = dtype_of<TestType>};
            add_rms_norm(problem);
            bool right = true;
            for (size_t i = 0; i < before.size(); ++i) right = right && residual[i] == before[i] + to_float(delta[i]);
            for (int64_t r = 0; r < rows; ++r) {
                const auto expected = normalised(residual, r * dim, dim, weight);
                for (int64_t c = 0; c < dim; ++c)
                    right = right && near<TestType>(value(out, r * dim + c), expected[static_cast<size_t>(c)]);
            }
            CHECK(right);

            const auto sum = residual;
            std::vector<TestType> again(out.size());
            problem.delta = nullptr;
            problem.out = again.data();
            add_rms_norm(problem);
            CHECK(residual == sum);
            CHECK(same_bits(again, out));
        }
}

TEMPLATE_TEST_CASE("rope rotates pairs of the two halves", "", float, bf16) {
    for (const SimdLevel level : levels())
        for (const int d : {2, 16, 34, 64, 80, 128}) {
            INFO(name_of(level) << " d=" << d);
            const ForcedSimdLevel forced(level);
            const int n_heads = 3;
            const std::vector<int64_t> positions = {0, 1, 77, 4095, 131071};
            std::vector<double> frequencies;
            for (int c = 0; c < d / 2; ++c) frequencies.push_back(std::pow(10000.0, -2.0 * c / d));
            const auto n = static_cast<int64_t>(positions.size());
            std::vector<float> cosines(static_cast<size_t>(n * d / 2)), sines(cosines.size());
            rope_table(positions, frequencies, 1.25, cosines.data(), sines.data());
            const int64_t stride = n_heads * d + 6;
            const auto before = random_values<TestType>(static_cast<size_t>(n * stride), 1);
            auto x = before;
            rope({.dtype = dtype_of<TestType>,
                  .n_tokens = n,
                  .n_heads = n_heads,
                  .head_dim = d,
                  .x = x.data(),
                  .token_stride = stride,
                  .head_stride = 0,
                  .cosines = cosines.data(),
                  .sines = sines.data()});
            bool right = true;
            for (int64_t t = 0; t < n; ++t) {
                for (int h = 0; h < n_heads; ++h)
                    for (int c = 0; c < d / 2; ++c) {
                        const double angle = static_cast<double>(positions[static_cast<size_t>(t)]) *
                                             frequencies[static_cast<size_t>(c)];
                        const int64_t low = t * stride + h * d + c, high = low + d / 2;
                        const double a = value(before, low), b = value(before, high), size = 1.25 * std::hypot(a, b);
                        right = right &&
                                near<TestType>(value(x, low), 1.25 * (a * std::cos(angle) - b * std::sin(angle)), size);
                        right = right && near<TestType>(value(x, high),
                                                        1.25 * (b * std::cos(angle) + a * std::sin(angle)), size);
                    }
                for (int64_t c = n_heads * d; c < stride; ++c)
                    right = right && value(x, t * stride + c) == value(before, t * stride + c);
            }
            CHECK(right);
        }
}

TEST_CASE("rope by a difference moves a key to another position") {
    const int d = 64;
    std::vector<double> frequencies;
    for (int c = 0; c < d / 2; ++c) frequencies.push_back(std::pow(100000.0, -2.0 * c / d));
    const auto turned = [&](std::vector<float> x, int64_t position) {
        std::vector<float> cosines(d / 2), sines(d / 2);
        rope_table({&position, 1}, frequencies, 1.0, cosines.data(), sines.data());
        rope({.dtype = DType::f32,
              .n_tokens = 1,
              .n_heads = 1,
              .head_dim = d,
              .x = x.data(),
              .token_stride = d,
              .head_stride = 0,
              .cosines = cosines.data(),
              .sines = sines.data()});
        return x;
    };
    const auto key = random_values<float>(d, 1);
    const auto moved = turned(turned(key, 3000), 17 - 3000), direct = turned(key, 17);
    for (size_t c = 0; c < d; ++c) CHECK(moved[c] == Approx(direct[c]).margin(1e-5));
}

TEMPLATE_TEST_CASE("swiglu equals a double loop", "", float, bf16) {
    for (const SimdLevel level : levels())
        for (const int64_t dim : {1, 2, 15, 16, 17, 100, 1536}) {
            INFO(name_of(level) << " dim=" << dim);
            const ForcedSimdLevel forced(level);
            const int64_t rows = 30;
            auto both = random_values<TestType>(static_cast<size_t>(rows * 2 * dim), 1, 4.0f);
            std::vector<TestType> out(static_cast<size_t>(rows * dim));
            swiglu({.dtype = dtype_of<TestType>,
                    .n_rows = rows,
                    .dim = dim,
                    .gate = both.data(),
                    .up = both.data() + dim,
                    .in_stride = 2 * dim,
                    .out = out.data(),
                    .out_stride = 0});
            bool right = true;
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t c = 0; c < dim; ++c) {
                    const double gate = value(both, r * 2 * dim + c), up = value(both, r * 2 * dim + dim + c);
                    right = right && near<TestType>(value(out, r * dim + c), gate / (1 + std::exp(-gate)) * up);
                }
            CHECK(right);
        }
}

TEST_CASE("swiglu far from zero") {
    for (const SimdLevel level : levels()) {
        INFO(name_of(level));
        const ForcedSimdLevel forced(level);
        const std::vector<float> gate = {-1e30f, -1e4f, -100.0f, 0.0f, 100.0f, 1e30f}, up(gate.size(), 1.0f);
        std::vector<float> out(gate.size());
        swiglu({.dtype = DType::f32,
                .n_rows = 1,
                .dim = 6,
                .gate = gate.data(),
                .up = up.data(),
                .in_stride = 0,
                .out = out.data(),
                .out_stride = 0});
        CHECK(std::abs(out[0]) < 1e-6f);
        CHECK(std::abs(out[1]) < 1e-30f);
        CHECK(std::abs(out[2]) < 1e-30f);
        CHECK(out[3] == 0.0f);
        CHECK(out[4] == 100.0f);
        CHECK(out[5] == 1e30f);
    }
}
