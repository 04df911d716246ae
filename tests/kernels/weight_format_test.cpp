#include "kernels/weight_format.h"

#include <ggml.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/linear.h"
#include "tests/kernels/kernel_case.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

struct Named {
    WeightFormat format;
    ggml_type type;
};
constexpr Named stored_formats[] = {
    {WeightFormat::f32, GGML_TYPE_F32},   {WeightFormat::bf16, GGML_TYPE_BF16}, {WeightFormat::f16, GGML_TYPE_F16},
    {WeightFormat::q4_0, GGML_TYPE_Q4_0}, {WeightFormat::q4_1, GGML_TYPE_Q4_1}, {WeightFormat::q5_0, GGML_TYPE_Q5_0},
    {WeightFormat::q5_1, GGML_TYPE_Q5_1}, {WeightFormat::q8_0, GGML_TYPE_Q8_0}, {WeightFormat::q2_k, GGML_TYPE_Q2_K},
    {WeightFormat::q3_k, GGML_TYPE_Q3_K}, {WeightFormat::q4_k, GGML_TYPE_Q4_K}, {WeightFormat::q5_k, GGML_TYPE_Q5_K},
    {WeightFormat::q6_k, GGML_TYPE_Q6_K}};

/// Any bytes are a weight. @param quantised real weights: numbers around 0, quantized like ggml
std::vector<uint8_t> stored_rows(const Named& named, int64_t rows, int64_t in, bool quantised) {
    std::vector<uint8_t> bytes(static_cast<size_t>(rows) * row_bytes(named.format, in));
    if (quantised) {
        const auto numbers = random_values<float>(static_cast<size_t>(rows * in), 11, 0.05f);
        ggml_quantize_chunk(named.type, numbers.data(), bytes.data(), 0, rows, in, nullptr);
    } else {
        std::mt19937 random(7);
        for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    }
    return bytes;
}

std::vector<float> expanded_by_ggml(const Named& named, const std::vector<uint8_t>& rows, size_t n) {
    std::vector<float> numbers(n);
    if (named.type == GGML_TYPE_F32)
        std::memcpy(numbers.data(), rows.data(), n * sizeof(float));
    else
        ggml_get_type_traits(named.type)->to_float(rows.data(), numbers.data(), static_cast<int64_t>(n));
    return numbers;
}

template <class T>
std::vector<T> expanded(const Named& named, const std::vector<uint8_t>& rows, int64_t n_rows, int64_t in) {
    std::vector<T> numbers(static_cast<size_t>(n_rows * in));
    expand_weights({.format = named.format,
                    .n_rows = n_rows,
                    .in = in,
                    .rows = rows.data(),
                    .dtype = dtype_of<T>,
                    .out = numbers.data()});
    return numbers;
}

/// Compares bits. NaNs are equal.
size_t n_other(const std::vector<float>& found, const std::vector<float>& expected) {
    size_t n = 0;
    for (size_t i = 0; i < expected.size(); ++i)
        n += std::isnan(expected[i]) ? !std::isnan(found[i])
                                     : std::bit_cast<uint32_t>(found[i]) != std::bit_cast<uint32_t>(expected[i]);
    return n;
}

template <class T, class Y>
std::vector<Y> product(const Linear& weight, int64_t n_rows, const std::vector<T>& x) {
    std::vector<Y> y(static_cast<size_t>(n_rows * weight.out), Y{});
    Linear problem = weight;
    problem.dtype = dtype_of<T>;
    problem.n_rows = n_rows;
    problem.x = x.data();
    problem.y = y.data();
    problem.y_dtype = dtype_of<Y>;
    linear(problem);
    return y;
}

template <class T>
void check_product(const Named& named, int64_t in, int64_t out) {
    const auto rows = stored_rows(named, out, in, true);
    const auto numbers = expanded<T>(named, rows, out, in);
    for (const int64_t n_rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 16, 17, 24, 25, 26, 27, 49, 96, 97, 200}) {
        CAPTURE(n_rows, in, out);
        const auto x = random_values<T>(static_cast<size_t>(n_rows * in), 3);
        const auto whole = product<T, float>({.in = in, .out = out, .weight = numbers.data()}, n_rows, x);
        const auto stored =
            product<T, float>({.in = in, .out = out, .weight = rows.data(), .format = named.format}, n_rows, x);
        CHECK(n_other(stored, whole) == 0);
    }
}

}  // namespace

TEST_CASE("weights of GGUF's formats expand to the numbers of ggml's reference, bit by bit") {
    for (const auto level : levels())
        for (const Named& named : stored_formats)
            for (const bool quantised : {true, false}) {
                const ForcedSimdLevel forced(level);
                CAPTURE(name_of(level), ggml_type_name(named.type), quantised);
                constexpr int64_t n_rows = 37, in = 768;
                REQUIRE(row_bytes(named.format, in) == ggml_row_size(named.type, in));
                const auto rows = stored_rows(named, n_rows, in, quantised);
                const auto expected = expanded_by_ggml(named, rows, n_rows * in);
                CHECK(n_other(expanded<float>(named, rows, n_rows, in), expected) == 0);
                const auto found = expanded<bf16>(named, rows, n_rows, in);
                size_t n_differ = 0;
                for (size_t i = 0; i < found.size(); ++i) {
                    const float number = to_float(found[i]), rounded = to_float(from_float<bf16>(expected[i]));
                    // The processor's own rounding flushes subnormal numbers to 0.
                    const bool is_tiny = std::abs(expected[i]) < 0x1p-126f && number == 0;
                    n_differ += std::isnan(rounded) ? !std::isnan(number) : number != rounded && !is_tiny;
                }
                CHECK(n_differ == 0);
            }
}

TEST_CASE("a product with stored weights equals that with their numbers, bit by bit, for any number of rows") {
    for (const auto level : levels())
        for (const Named& named : stored_formats) {
            const ForcedSimdLevel forced(level);
            CAPTURE(name_of(level), ggml_type_name(named.type));
            // The second has several blocks of `in`; some blocks of the third begin inside 256 weights that share a
            // scale.
            for (const auto& [in, out] : {std::pair<int64_t, int64_t>{256, 61}, {2560, 50}, {5120, 17}}) {
                check_product<float>(named, in, out);
                check_product<bf16>(named, in, out);
            }
        }
}

TEST_CASE("rows with incomplete blocks are rejected") {
    float value = 0;
    CHECK_THROWS_AS(linear({.n_rows = 1,
                            .in = 33,
                            .out = 1,
                            .x = &value,
                            .weight = &value,
                            .format = WeightFormat::q4_0,
                            .y = &value}),
                    std::invalid_argument);
    CHECK_THROWS_AS(
        expand_weights({.format = WeightFormat::q6_k, .n_rows = 1, .in = 32, .rows = &value, .out = &value}),
        std::invalid_argument);
    CHECK_THROWS_AS(expand_weights({.n_rows = 1, .in = 1, .rows = nullptr, .out = &value}), std::invalid_argument);
}
