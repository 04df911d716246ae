// The kernels that multiply and expand stored weights, thread by thread on the processor.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "kernels/cuda/linear_matrix_tile.h"
#include "kernels/cuda/linear_tile.h"
#include "tests/kernels/kernel_case.h"
#include "tests/kernels/on_device.h"
#include "tests/skip.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

constexpr WeightFormat all_formats[] = {WeightFormat::f32,  WeightFormat::bf16, WeightFormat::f16,  WeightFormat::q4_0,
                                        WeightFormat::q4_1, WeightFormat::q5_0, WeightFormat::q5_1, WeightFormat::q8_0,
                                        WeightFormat::q2_k, WeightFormat::q3_k, WeightFormat::q4_k, WeightFormat::q5_k,
                                        WeightFormat::q6_k};
using Block = cuda::HostBlock<cuda::linear_threads>;

/// Any bytes are valid weights. @param small avoids huge numbers and NaN
std::vector<uint8_t> random_table(WeightFormat format, int64_t rows, int64_t in, bool small) {
    std::vector<uint8_t> bytes(static_cast<size_t>(rows) * row_bytes(format, in));
    std::mt19937 random(static_cast<unsigned>(format) + 7);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    if (!small) return bytes;
    const auto n = static_cast<size_t>(rows * in);
    if (format == WeightFormat::f32) std::memcpy(bytes.data(), random_values<float>(n, 5).data(), n * 4);
    if (format == WeightFormat::bf16) std::memcpy(bytes.data(), random_values<bf16>(n, 5).data(), n * 2);
    // Halves of factor and offset have exponents of numbers below 1.
    for (size_t i = 1; i < bytes.size(); i += format == WeightFormat::f16 ? 2 : bytes.size()) bytes[i] &= 0xbb;
    const WeightBlock block = block_size_of_format(format);
    const auto tame = [&](size_t at) {
        for (size_t i = at + 1; i < bytes.size(); i += block.bytes) bytes[i] = (bytes[i] & 0x83) | 0x20;
    };
    if (block.n == 32) tame(0);
    if (format == WeightFormat::q4_1 || format == WeightFormat::q5_1) tame(2);
    if (format == WeightFormat::q2_k) tame(80), tame(82);
    if (format == WeightFormat::q3_k) tame(108);
    if (format == WeightFormat::q4_k || format == WeightFormat::q5_k) tame(0), tame(2);
    if (format == WeightFormat::q6_k) tame(208);
    return bytes;
}

template <class T>
bool same_numbers(const std::vector<T>& a, const std::vector<T>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
        const float x = to_float(a[i]), y = to_float(b[i]);
        if (std::bit_cast<uint32_t>(x) != std::bit_cast<uint32_t>(y) && !(std::isnan(x) && std::isnan(y))) return false;
    }
    return a.size() == b.size();
}

template <class T>
std::vector<T> expanded(WeightFormat format, const std::vector<uint8_t>& table, int64_t rows, int64_t in,
                        const std::vector<int32_t>& which = {}) {
    std::vector<T> out(static_cast<size_t>(rows * in));
    const cuda::ExpandProblem p{
        rows, in, table.data(), row_bytes(format, in), which.empty() ? nullptr : which.data(), out.data()};
    Block block;
    for (int64_t i = 0; i < cuda::divide_rounding_up(rows * in / 8, Block::block_threads); ++i)
        cuda::with_format(format, [&]<WeightFormat f>() { cuda::expand<f, T>(block, i, p); });
    return out;
}

template <class Tile>
void multiply_all(const cuda::LinearProblem& p, int rows, int outputs, const std::function<void(const Tile&)>& one) {
    for (int64_t row = 0; row < p.n_rows; row += rows)
        for (int64_t output = 0; output < p.out; output += outputs) one(Tile{p, row, output});
}

/// @tparam R only for bf16
template <class T, int M, int R = 1>
void linear_emulated(const Linear& problem) {
    const WeightFormat format = *problem.format;
    const cuda::LinearProblem p{problem.n_rows,
                                problem.in,
                                problem.out,
                                problem.x,
                                problem.x_stride,
                                static_cast<const uint8_t*>(problem.weight),
                                row_bytes(format, problem.in),
                                problem.bias,
                                problem.y,
                                problem.y_dtype,
                                problem.y_stride};
    cuda::with_format(format, [&]<WeightFormat f>() {
        if constexpr (sizeof(T) == 4) {
            using Tile = cuda::LinearTile<Block, f, M>;
            Block block;
            multiply_all<Tile>(p, M, Tile::outputs_of_block, [&](const Tile& tile) { tile.multiply(block); });
        } else {
            using Matrices = cuda::HostBlock<cuda::matrix_threads>;
            using Tile = cuda::LinearMatrixTile<Matrices, f, M, R>;
            Matrices block(problem.n_rows % 2 == 0);
            typename Tile::Shared shared;
            multiply_all<Tile>(p, Tile::block_rows, Tile::block_outputs,
                               [&](const Tile& tile) { tile.multiply(block, shared); });
        }
    });
}

template <class T>
double furthest(const std::vector<T>& a, const std::vector<T>& b, double size) {
    double worst = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(a.size()); ++i) {
        const double error = std::abs(value(a, i) - value(b, i)) / (size + std::abs(value(b, i)));
        worst = std::isnan(error) ? 1e9 : std::max(worst, error);
    }
    return worst;
}

/// Computes x W^T + bias of rows `stride` apart into y (rows, out).
template <class T, class Table>
Linear product_of(WeightFormat format, int64_t rows, int64_t in, int64_t out, int64_t stride, const std::vector<T>& x,
                  const Table& table, const std::vector<float>& bias, std::vector<float>& y) {
    return {.dtype = dtype_of<T>,
            .n_rows = rows,
            .in = in,
            .out = out,
            .x = x.data(),
            .x_stride = stride,
            .weight = table.data(),
            .format = format,
            .bias = bias.data(),
            .y = y.data(),
            .y_dtype = DType::f32,
            .y_stride = out};
}

}  // namespace

TEMPLATE_TEST_CASE("a card expands stored weights to the CPU's numbers, bit by bit", "[cuda]", float, bf16) {
    for (const WeightFormat format : all_formats) {
        INFO("format " << static_cast<int>(format));
        const int64_t rows = 40, in = 512;
        const auto table = random_table(format, rows, in, false);
        std::vector<TestType> expected(static_cast<size_t>(rows * in));
        expand_weights({format, rows, in, table.data(), dtype_of<TestType>, expected.data()});
        CHECK(same_numbers(expanded<TestType>(format, table, rows, in), expected));

        const std::vector<int32_t> which = {39, 0, 7, 7};
        const auto some = expanded<TestType>(format, table, 4, in, which);
        for (size_t i = 0; i < which.size(); ++i) {
            const auto begin = expected.begin() + which[i] * in;
            CHECK(same_numbers(std::vector<TestType>(some.begin() + static_cast<int64_t>(i) * in,
                                                     some.begin() + static_cast<int64_t>(i + 1) * in),
                               std::vector<TestType>(begin, begin + in)));
        }
    }
}

TEMPLATE_TEST_CASE("simulated products with few rows of a card equal the CPU's", "[cuda]", float, bf16) {
    for (const WeightFormat format : all_formats) {
        INFO("format " << static_cast<int>(format));
        const int64_t rows = 11, in = block_size_of_format(format).n == 1 ? 1000 : 1280, out = 37, stride = in + 8;
        const auto table = random_table(format, out, in, true);
        const auto x = random_values<TestType>(static_cast<size_t>(rows * stride), 3);
        const auto bias = random_values<float>(static_cast<size_t>(out), 4);
        std::vector<float> expected(static_cast<size_t>(rows * out)), found(expected), single(expected);
        Linear problem = product_of<TestType>(format, rows, in, out, stride, x, table, bias, expected);
        linear(problem);
        double size = 0;
        for (const float y : expected) size = std::max(size, std::abs(static_cast<double>(y)));
        REQUIRE(std::isfinite(size));
        problem.y = found.data();
        linear_emulated<TestType, 7, 2>(problem);
        CHECK(furthest(found, expected, size) <= 1e-5);
        problem.y = single.data();
        linear_emulated<TestType, 1>(problem);
        CHECK(same_bits(found, single));

        problem.y = single.data();
        linear_emulated<TestType, 2>(problem);
        CHECK(same_bits(found, single));

        std::vector<bf16> narrow(expected.size());
        problem.y = narrow.data();
        problem.y_dtype = DType::bf16;
        linear_emulated<TestType, 4, 2>(problem);
        for (size_t i = 0; i < narrow.size(); ++i) REQUIRE(narrow[i].bits == bf16_from_float(found[i]).bits);
    }
}

TEMPLATE_TEST_CASE("CUDA expands stored weights to the CPU's numbers, bit by bit", "[card]", float, bf16) {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    using namespace cuda::abi;
    for (const WeightFormat format : all_formats) {
        INFO("format " << static_cast<int>(format));
        const int64_t rows = 40, in = 512;
        auto table = random_table(format, rows, in, false);
        std::vector<TestType> expected(static_cast<size_t>(rows * in)), found(expected);
        expand_weights({format, rows, in, table.data(), dtype_of<TestType>, expected.data()});
        Mirror mirror;
        mirror.add(table), mirror.add(found);
        on_device(expand_weights_symbol,
                  ExpandWeights{format, rows, in, mirror(table.data()), dtype_of<TestType>, mirror(found.data())});
        mirror.fetch();
        CHECK(same_numbers(found, expected));
    }
}

TEST_CASE("CUDA looks up rows of a stored table like the CPU and rejects invalid rows", "[card]") {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    using namespace cuda::abi;
    auto table = random_table(WeightFormat::q6_k, 40, 512, true);
    std::vector<float> all(40 * 512), found(3 * 512);
    expand_weights({WeightFormat::q6_k, 40, 512, table.data(), DType::f32, all.data()});
    std::vector<int32_t> rows = {39, 0, 39};
    Mirror mirror;
    mirror.add(table), mirror.add(found);
    const RowLookup p{WeightFormat::q6_k, mirror(table.data()), 40, 512, rows.data(), 3, mirror(found.data())};
    const size_t bytes = device_function<LookUpRowsWorkspace>(look_up_rows_workspace_symbol)(&p);
    on_device(look_up_rows_symbol, p, bytes);
    mirror.fetch();
    for (size_t i = 0; i < rows.size(); ++i)
        CHECK(std::equal(found.begin() + static_cast<int64_t>(i) * 512,
                         found.begin() + static_cast<int64_t>(i + 1) * 512, all.begin() + rows[i] * 512));
    rows[1] = 40;
    std::array<char, 200> message{};
    CHECK_FALSE(
        device_function<LookUpRows>(look_up_rows_symbol)(&p, nullptr, 0, nullptr, message.data(), message.size()));
    CHECK(std::string(message.data()) == "look_up_rows: a row index is outside the table");
}

TEST_CASE("rows of a product with many outputs on CUDA equal a single row's", "[card]") {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    for (const WeightFormat format : all_formats) {
        INFO("format " << static_cast<int>(format));
        const int64_t rows = 130, in = 256, out = 16390;
        auto table = random_table(format, out, in, true);
        auto x = random_values<bf16>(static_cast<size_t>(rows * in), 3);
        std::vector<float> bias(static_cast<size_t>(out), 0.5f), alone(static_cast<size_t>(rows * out)), found(alone);
        Linear p = product_of<bf16>(format, rows, in, out, in, x, table, bias, found);
        Mirror mirror;
        mirror.add(table), mirror.add(x), mirror.add(bias), mirror.add(alone), mirror.add(found);
        p.weight = mirror(p.weight), p.bias = mirror(p.bias);
        const auto multiply = [&](std::vector<float>& y, int64_t first, int64_t n) {
            p.n_rows = n, p.x = mirror(x.data() + first * in), p.y = mirror(y.data() + first * out);
            on_device(cuda::abi::linear_symbol, p);
        };
        for (int64_t row = 0; row < rows; ++row) multiply(alone, row, 1);
        for (int64_t row = 0, n = 49; row < rows; row += n, n = std::min<int64_t>(rows - row, n + 10))
            multiply(found, row, n);
        mirror.fetch();
        CHECK(same_bits(found, alone));
    }
}

TEMPLATE_TEST_CASE("products with few rows on CUDA equal the CPU's for any number of rows", "[card]", float, bf16) {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    for (const WeightFormat format : all_formats) {
        INFO("format " << static_cast<int>(format));
        const int64_t rows = 75, in = block_size_of_format(format).n == 1 ? 1000 : 1280, out = 37, stride = in + 8;
        auto table = random_table(format, out, in, true);
        auto x = random_values<TestType>(static_cast<size_t>(rows * stride), 3);
        auto bias = random_values<float>(static_cast<size_t>(out), 4);
        std::vector<float> expected(static_cast<size_t>(rows * out)), found(expected), in_parts(expected);
        Linear p = product_of<TestType>(format, rows, in, out, stride, x, table, bias, expected);
        linear(p);
        double size = 0;
        for (const float y : expected) size = std::max(size, std::abs(static_cast<double>(y)));
        Mirror mirror;
        mirror.add(table), mirror.add(x), mirror.add(bias), mirror.add(found), mirror.add(in_parts);
        p.x = mirror(p.x), p.weight = mirror(p.weight), p.bias = mirror(p.bias), p.y = mirror(found.data());
        on_device(cuda::abi::linear_symbol, p);
        for (int64_t row = 0, n = 1; row < rows; row += n, n = std::min<int64_t>(n + 5, rows - row)) {
            p.n_rows = n, p.x = mirror(x.data() + row * stride), p.y = mirror(in_parts.data() + row * out);
            on_device(cuda::abi::linear_symbol, p);
        }
        mirror.fetch();
        CHECK(furthest(found, expected, size) <= 1e-5);
        CHECK(same_bits(found, in_parts));
    }
}
