#include "kernels/stored_number_products.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/attention_decode.h"
#include "tests/kernels/kernel_case.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

constexpr int row_stride = 217;

template <class T>
StoredNumbers numbers_of(const std::vector<T>& data, int64_t n, int width) {
    return {.dtype = dtype_of<T>, .data = data.data(), .stride = row_stride, .n = n, .width = width};
}

}  // namespace

TEMPLATE_TEST_CASE("stored numbers times a map are added to the output, independent of other entries", "", float,
                   bf16) {
    for (const SimdLevel level : levels())
        for (const int64_t n : {1, 3, 4, 6, 128})
            for (const auto& [width, columns] : {std::pair{1, 1}, {7, 64}, {192, 80}, {200, 20}}) {
                INFO(name_of(level) << " " << n << " x " << width << " x " << columns);
                const ForcedSimdLevel forced(level);
                const auto data = random_values<TestType>(static_cast<size_t>(n * row_stride), 1);
                const auto map = random_values<float>(static_cast<size_t>(width * columns), 2);
                const auto before = random_values<float>(static_cast<size_t>(n * columns), 3);
                auto out = before;
                add_product_with_map(numbers_of(data, n, width), map.data(), columns, out.data());
                for (int64_t i = 0; i < n; ++i)
                    for (int c = 0; c < columns; ++c) {
                        double sum = value(before, i * columns + c), size = std::abs(sum);
                        for (int k = 0; k < width; ++k) {
                            const double term = value(data, i * row_stride + k) * value(map, int64_t{k} * columns + c);
                            sum += term;
                            size += std::abs(term);
                        }
                        CHECK(std::abs(value(out, i * columns + c) - sum) <= size * (width + 1) * 0x1p-24);
                    }
                std::vector<float> alone(before.end() - columns, before.end());
                const std::vector<TestType> last(data.end() - row_stride, data.end());
                add_product_with_map(numbers_of(last, 1, width), map.data(), columns, alone.data());
                CHECK(alone == std::vector<float>(out.end() - columns, out.end()));
            }
}

TEMPLATE_TEST_CASE("stored numbers are summed with weights", "", float, bf16) {
    for (const SimdLevel level : levels())
        for (const int queries : {1, 2, 3, 4, 5, 9})
            for (const auto& [n, width] : {std::pair{1, 1}, {128, 64}, {77, 200}, {5, 19}}) {
                INFO(name_of(level) << " " << queries << " queries, " << n << " x " << width);
                const ForcedSimdLevel forced(level);
                const auto data = random_values<TestType>(static_cast<size_t>(n * row_stride), 4);
                const auto weights = random_values<float>(static_cast<size_t>(queries * decode_tile), 5);
                const auto before = random_values<float>(static_cast<size_t>(queries * width), 6);
                auto sums = before;
                add_weighted(numbers_of(data, n, width), weights.data(), decode_tile, queries, sums.data());
                for (int query = 0; query < queries; ++query)
                    for (int c = 0; c < width; ++c) {
                        double sum = value(before, int64_t{query} * width + c), size = std::abs(sum);
                        for (int64_t i = 0; i < n; ++i) {
                            const double term =
                                value(weights, query * decode_tile + i) * value(data, i * row_stride + c);
                            sum += term;
                            size += std::abs(term);
                        }
                        CHECK(std::abs(value(sums, int64_t{query} * width + c) - sum) <=
                              size * static_cast<double>(n + 1) * 0x1p-24);
                    }
            }
}
