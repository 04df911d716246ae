// The elementwise, vector and row kernels, thread by thread on the processor.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/cuda/copy_plan.h"
#include "kernels/cuda/elementwise_tile.h"
#include "tests/kernels/kernel_case.h"
#include "tests/kernels/on_device.h"
#include "tests/skip.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

using Block = cuda::HostBlock<cuda::element_threads>;

template <class T>
double furthest(const std::vector<T>& a, const std::vector<T>& b) {
    double worst = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(a.size()); ++i) {
        const double error = std::abs(value(a, i) - value(b, i)) / std::max(1e-3, std::abs(value(b, i)));
        worst = std::isnan(error) ? 1e9 : std::max(worst, error);
    }
    return worst;
}

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 4e-6 : 0x1p-7 + 4e-6;

template <class X, class Delta, class Out>
void norm_emulated(const RmsNorm& p, X* x, const Delta* delta) {
    Block block;
    float reduced[cuda::element_threads / 32];
    const cuda::Norm<Block, X, Delta, Out> norm{p, x, delta};
    const int64_t n = cuda::divide_rounding_up(p.n_rows * p.heads, cuda::vectors_of_norm_block(p.dim));
    for (int64_t i = 0; i < n; ++i) norm.run(block, i, spoiled(reduced));
}

template <class X, class Out>
void check_norm(int64_t rows, int64_t heads, int64_t dim) {
    INFO("rows=" << rows << " heads=" << heads << " dim=" << dim);
    const int64_t stride = heads * dim + 5;
    auto x = random_values<X>(static_cast<size_t>(rows * stride), 1);
    const auto weight = random_values<float>(static_cast<size_t>(dim), 2);
    std::vector<Out> expected(x.size()), found(x.size());
    RmsNorm p{.n_rows = rows,
              .heads = heads,
              .dim = dim,
              .eps = 1e-5f,
              .x = x.data(),
              .x_dtype = dtype_of<X>,
              .x_stride = stride,
              .weight = weight.data(),
              .out = expected.data(),
              .out_dtype = dtype_of<Out>,
              .out_stride = stride};
    rms_norm(p);
    p.out = found.data();
    norm_emulated<X, float, Out>(p, x.data(), nullptr);
    CHECK(furthest(found, expected) <= tolerance<Out>);
}

template <class Delta>
void check_add_norm(int64_t rows, int64_t dim) {
    auto residual = random_values<float>(static_cast<size_t>(rows * dim), 1), added = residual;
    const auto delta = random_values<Delta>(residual.size(), 3);
    const auto weight = random_values<float>(static_cast<size_t>(dim), 2);
    std::vector<bf16> expected(residual.size()), found(residual.size());
    add_rms_norm({.n_rows = rows,
                  .dim = dim,
                  .eps = 1e-5f,
                  .residual = residual.data(),
                  .delta = delta.data(),
                  .delta_dtype = dtype_of<Delta>,
                  .weight = weight.data(),
                  .out = expected.data(),
                  .out_dtype = DType::bf16});
    norm_emulated<float, Delta, bf16>({.n_rows = rows,
                                       .dim = dim,
                                       .eps = 1e-5f,
                                       .x_stride = dim,
                                       .weight = weight.data(),
                                       .out = found.data(),
                                       .out_stride = dim},
                                      added.data(), delta.data());
    CHECK(same_bits(added, residual));
    CHECK(furthest(found, expected) <= tolerance<bf16>);
}

void copy_emulated(std::span<const RowCopy> copies) {
    cuda::Workspace size;
    const cuda::CopyPlan counted(copies, size);
    std::vector<char> memory(size.bytes() + 1 + 16, 'x');
    char* const begin = memory.data() + 16 - reinterpret_cast<uintptr_t>(memory.data()) % 16;
    cuda::Workspace workspace(begin);
    const cuda::CopyPlan plan(copies, workspace);
    std::memcpy(workspace.host_copy_or_device(), workspace.host().data(), workspace.host().size());
    Block block;
    const auto stage = [&](const cuda::CopyPlan::Stage& of, const cuda::RowCopyPart* parts) {
        for (int64_t i = of.n_blocks - 1; i >= 0; --i)
            cuda::copy_rows_by_thread_block(
                block, parts[cuda::item_of_block(parts, static_cast<int64_t>(of.parts.size()), i, of.n_blocks)], i);
    };
    stage(plan.out, plan.placed_out);
    stage(plan.back, plan.placed_back);
    CHECK(begin[size.bytes()] == 'x');
}

}  // namespace

TEST_CASE("simulated norms of a card equal the CPU's", "[cuda]") {
    for (const int64_t dim : {1, 64, 80, 128, 511, 576, 2049}) {
        check_norm<float, float>(3, 1, dim);
        check_norm<float, bf16>(5, 3, dim);
        check_norm<bf16, bf16>(2, 9, dim);
        check_norm<bf16, float>(7, 1, dim);
        check_add_norm<float>(5, dim);
        check_add_norm<bf16>(3, dim);
    }
}

TEMPLATE_TEST_CASE("simulated activations and rotations of a card equal the CPU's", "[cuda]", float, bf16) {
    Block block;
    for (const int64_t dim : {1, 100, 1024, 2500}) {
        const int64_t rows = 3;
        const auto in = random_values<TestType>(static_cast<size_t>(rows * 2 * dim), 1, 30.0f);
        std::vector<TestType> expected(static_cast<size_t>(rows * dim)), found(expected);
        SwiGlu p{dtype_of<TestType>, rows, dim, in.data(), in.data() + dim, 2 * dim, expected.data(), dim};
        swiglu(p);
        p.out = found.data();
        for (int64_t i = 0; i < rows * cuda::divide_rounding_up(dim, cuda::elements_of_block); ++i)
            cuda::apply_swiglu<TestType>(block, i, p);
        CHECK(furthest(found, expected) <= tolerance<TestType>);
    }
    for (const int d : {2, 64, 80, 128}) {
        const int64_t tokens = 5;
        auto expected = random_values<TestType>(static_cast<size_t>(tokens * (3 * d + 7)), 1), found = expected;
        std::vector<float> cosines, sines;
        for (int64_t i = 0; i < tokens * d / 2; ++i) {
            cosines.push_back(std::cos(static_cast<float>(i)));
            sines.push_back(std::sin(static_cast<float>(i)));
        }
        Rope p{dtype_of<TestType>, tokens, 3, d, expected.data(), 3 * d + 7, d, cosines.data(), sines.data()};
        rope(p);
        p.x = found.data();
        for (int64_t token = 0; token < tokens; ++token) cuda::rotate_token_vectors<TestType>(block, token, p);
        double worst = 0;
        for (int64_t i = 0; i < static_cast<int64_t>(found.size()); ++i)
            worst = std::max(worst, std::abs(value(found, i) - value(expected, i)));
        CHECK(worst <= (sizeof(TestType) == 4 ? 1e-6 : 0x1p-6));
    }
}

TEST_CASE("a card copies rows in pieces of any size, also within one array", "[cuda]") {
    for (const size_t row_bytes : {1, 6, 12, 32, 160, 40000}) {
        for (const bool chosen : {false, true}) {
            INFO(row_bytes << " bytes, chosen " << chosen);
            std::vector<uint32_t> rows = {1, 2, 5, 6, 40, 90};
            const auto n = static_cast<int64_t>(rows.size());
            alignas(16) static unsigned char store[100 * 40064];
            unsigned char* const array = store;
            for (size_t i = 0; i < 100 * (row_bytes + 32); ++i) array[i] = static_cast<unsigned char>(i * 7 + i / 251);
            const std::vector<unsigned char> before(array, array + 100 * (row_bytes + 32));
            const size_t stride = row_bytes + 32;
            std::vector<unsigned char> apart(static_cast<size_t>(n) * row_bytes);
            const RowCopy out{array, stride, apart.data(), row_bytes, n, row_bytes, chosen ? rows.data() : nullptr};
            copy_emulated({&out, 1});
            // Entries move up by a row or more, in place.
            const RowCopy up{array + (chosen ? 0 : stride), stride, array, stride, n, row_bytes,
                             chosen ? rows.data() : nullptr};
            copy_emulated({&up, 1});
            bool right = true;
            for (size_t i = 0; i < rows.size(); ++i) {
                const size_t from = (chosen ? rows[i] : i) * stride;
                right = right && std::memcmp(apart.data() + i * row_bytes, before.data() + from, row_bytes) == 0;
                const size_t moved = (chosen ? rows[i] : i + 1) * stride;
                right = right && std::memcmp(array + i * stride, before.data() + moved, row_bytes) == 0;
                right = right && std::memcmp(array + i * stride + row_bytes, before.data() + i * stride + row_bytes,
                                             32) == 0;  // bytes between rows
            }
            CHECK(right);
        }
    }
}

TEMPLATE_TEST_CASE("errors of vectors on a card equal a double loop", "[cuda]", float, bf16) {
    const int64_t rows = 5;
    const int heads = 3;
    for (const int d : {1, 31, 64, 100}) {
        const int64_t stride = heads * d + 4;
        auto found = random_values<TestType>(static_cast<size_t>(rows * stride), 1);
        auto expected = random_values<TestType>(found.size(), 2);
        for (int c = 0; c < d; ++c) expected[static_cast<size_t>(c)] = TestType{};
        std::vector<double> errors(static_cast<size_t>(rows * heads), -1.0);
        const RowErrors p{dtype_of<TestType>, rows,   heads,        d, found.data(), stride,
                          expected.data(),    stride, errors.data()};
        Block block;
        for (int64_t i = 0; i < cuda::divide_rounding_up(rows * heads, 4); ++i)
            cuda::compute_relative_errors<TestType>(block, i, p);
        for (int64_t i = 0; i < rows * heads; ++i) {
            double difference = 0, size = 0;
            for (int c = 0; c < d; ++c) {
                const int64_t at = i / heads * stride + i % heads * d + c;
                difference += std::pow(value(found, at) - value(expected, at), 2);
                size += std::pow(value(expected, at), 2);
            }
            CHECK(errors[static_cast<size_t>(i)] == Approx(size == 0 ? 0 : std::sqrt(difference / size)));
        }
    }
}

TEMPLATE_TEST_CASE("norms on CUDA equal the CPU's", "[card]", float, bf16) {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    using namespace cuda::abi;
    for (const int64_t dim : {1, 64, 80, 128, 511, 576, 2049}) {
        INFO("dim=" << dim);
        const int64_t rows = 5, heads = 3;
        auto x = random_values<TestType>(static_cast<size_t>(rows * heads * dim), 1);
        auto weight = random_values<float>(static_cast<size_t>(dim), 2);
        auto residual = random_values<float>(x.size(), 3), added = residual;
        std::vector<bf16> expected(x.size()), found(x.size()), expected_sum(x.size()), found_sum(x.size());
        RmsNorm p{.n_rows = rows,
                  .heads = heads,
                  .dim = dim,
                  .eps = 1e-5f,
                  .x = x.data(),
                  .x_dtype = dtype_of<TestType>,
                  .weight = weight.data(),
                  .out = expected.data(),
                  .out_dtype = DType::bf16};
        AddRmsNorm sum{.n_rows = rows * heads,
                       .dim = dim,
                       .eps = 1e-5f,
                       .residual = residual.data(),
                       .delta = x.data(),
                       .delta_dtype = dtype_of<TestType>,
                       .weight = weight.data(),
                       .out = expected_sum.data(),
                       .out_dtype = DType::bf16};
        rms_norm(p);
        add_rms_norm(sum);
        Mirror mirror;
        mirror.add(x), mirror.add(weight), mirror.add(added), mirror.add(found), mirror.add(found_sum);
        p.x = mirror(p.x), p.weight = sum.weight = mirror(p.weight), p.out = mirror(found.data());
        sum.residual = mirror(added.data()), sum.delta = p.x, sum.out = mirror(found_sum.data());
        on_device(rms_norm_symbol, p);
        on_device(add_rms_norm_symbol, sum);
        mirror.fetch();
        CHECK(furthest(found, expected) <= tolerance<bf16>);
        CHECK(furthest(found_sum, expected_sum) <= tolerance<bf16>);
        CHECK(same_bits(added, residual));
    }
}

TEMPLATE_TEST_CASE("activations, rotations and errors on CUDA equal the CPU's", "[card]", float, bf16) {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    using namespace cuda::abi;
    const int64_t rows = 3, dim = 2500;
    auto in = random_values<TestType>(static_cast<size_t>(rows * 2 * dim), 1, 30.0f);
    std::vector<TestType> expected(static_cast<size_t>(rows * dim)), found(expected);
    SwiGlu glu{dtype_of<TestType>, rows, dim, in.data(), in.data() + dim, 2 * dim, expected.data(), dim};
    swiglu(glu);
    auto turned = random_values<TestType>(5 * (3 * 80 + 7), 1), on_card = turned;
    std::vector<float> cosines, sines;
    for (int i = 0; i < 5 * 40; ++i) {
        cosines.push_back(std::cos(static_cast<float>(i)));
        sines.push_back(std::sin(static_cast<float>(i)));
    }
    Rope turn{dtype_of<TestType>, 5, 3, 80, turned.data(), 3 * 80 + 7, 0, cosines.data(), sines.data()};
    rope(turn);
    std::vector<double> errors(15, -1.0), host_errors(15, -1.0);
    Mirror mirror;
    mirror.add(in), mirror.add(found), mirror.add(on_card), mirror.add(cosines), mirror.add(sines), mirror.add(errors);
    RowErrors differ{dtype_of<TestType>, 5, 3, 80, in.data(), 240, in.data() + 1, 244, host_errors.data()};
    Block block;
    for (int64_t i = 0; i < 4; ++i) cuda::compute_relative_errors<TestType>(block, i, differ);
    differ.found = mirror(differ.found), differ.expected = mirror(differ.expected),
    differ.errors = mirror(errors.data());
    glu.gate = mirror(glu.gate), glu.up = mirror(glu.up), glu.out = mirror(found.data());
    turn.x = mirror(on_card.data()), turn.cosines = mirror(turn.cosines), turn.sines = mirror(turn.sines);
    on_device(swiglu_symbol, glu);
    on_device(rope_symbol, turn);
    on_device(row_errors_symbol, differ);
    mirror.fetch();
    CHECK(furthest(found, expected) <= tolerance<TestType>);
    double worst = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(turned.size()); ++i)
        worst = std::max(worst, std::abs(value(on_card, i) - value(turned, i)));
    CHECK(worst <= (sizeof(TestType) == 4 ? 1e-6 : 0x1p-6));
    for (size_t i = 0; i < errors.size(); ++i) CHECK(errors[i] == Approx(host_errors[i]));
}

TEST_CASE("entries move up within an array on CUDA", "[card]") {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    using namespace cuda::abi;
    const size_t stride = 144, row_bytes = 128;
    std::vector<uint32_t> rows;
    for (uint32_t i = 3; i < 5000; i += 1 + i % 3) rows.push_back(i);
    std::vector<char> array(5000 * stride);
    for (size_t i = 0; i < array.size(); ++i) array[i] = static_cast<char>(i * 7 + i / 251);
    auto expected = array;
    for (size_t i = 0; i < rows.size(); ++i)
        std::memmove(expected.data() + i * stride, expected.data() + rows[i] * stride, row_bytes);
    Mirror mirror;
    mirror.add(array);
    const RowCopy up{
        mirror(array.data()), stride, mirror(array.data()), stride, static_cast<int64_t>(rows.size()), row_bytes,
        rows.data()};
    const size_t bytes = device_function<CopyRowsWorkspace>(copy_rows_workspace_symbol)(&up, 1);
    const auto copy = device_function<CopyRows>(copy_rows_symbol);
    on_device(bytes, [&](void* workspace, size_t n, void* stream, char* error, size_t size) {
        return copy(&up, 1, workspace, n, stream, error, size);
    });
    mirror.fetch();
    CHECK(array == expected);
}
