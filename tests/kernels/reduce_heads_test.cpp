#include "kernels/reduce_heads.h"

#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/index_of_largest.h"
#include "kernels/larger.h"
#include "kernels/threads/parallel.h"

using namespace kvscope::kernels;

TEMPLATE_TEST_CASE("groups are reduced column by column in the order of their heads", "[reduce_heads]", float, double) {
    std::mt19937 random(5);
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    for (const int64_t n : {1, 511, 513, 30000}) {
        const int64_t groups = 2, group = 3, stride = n + 5;
        std::vector<float> in(static_cast<size_t>(groups * group * stride));
        for (float& value : in) value = uniform(random);
        in[static_cast<size_t>(stride)] = std::numeric_limits<float>::quiet_NaN();
        for (const auto kind : {HeadReduction::mean, HeadReduction::max, HeadReduction::sum}) {
            const float factor = kind == HeadReduction::sum ? 7.0f : 1.0f;
            CAPTURE(n, static_cast<int>(kind));
            std::vector<TestType> out(static_cast<size_t>(groups * n));
            reduce_heads(kind, in.data(), stride, groups, group, n, out.data(), n, factor);
            for (int64_t g = 0; g < groups; ++g) {
                for (int64_t j = 0; j < n; ++j) {
                    double value = in[static_cast<size_t>(g * group * stride + j)] * factor;
                    for (int64_t h = 1; h < group; ++h) {
                        const double other = in[static_cast<size_t>((g * group + h) * stride + j)] * factor;
                        value = kind == HeadReduction::max ? larger(value, other) : value + other;
                    }
                    const auto expected = static_cast<TestType>(kind == HeadReduction::mean ? value / 3.0 : value);
                    const TestType found = out[static_cast<size_t>(g * n + j)];
                    REQUIRE((found == expected || (found != found && expected != expected)));
                }
            }
        }
    }
}

TEST_CASE("index_of_largest returns the first largest value, or none if there is a NaN", "[index_of_largest]") {
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    const auto index = [](const std::vector<float>& values) {
        return index_of_largest(values.data(), static_cast<int64_t>(values.size()));
    };
    CHECK(index({}) == -1);
    CHECK(index({3, 5, 5, 1}) == 1);
    CHECK(index({-infinity, -infinity}) == 0);
    CHECK(index({-0.0f, 0.0f}) == 0);
    for (const size_t n : {1, 15, 16, 17, 100}) {
        for (size_t at = 0; at < n; ++at) {
            std::vector<float> values(n, -2.0f);
            values[at] = 7.0f;
            values.back() = std::max(values.back(), 7.0f);
            CHECK(index(values) == static_cast<int64_t>(at));
            values[at] = nan;
            CHECK(index(values) == -1);
        }
    }
}

TEST_CASE("the exception of the lowest failing call is thrown after all calls", "[parallel]") {
    for (const int64_t elements : {int64_t{0}, int64_t{1} << 20}) {
        std::vector<int> done(64);
        try {
            parallel_for(64, elements, [&](int64_t i) {
                if (i == 40 || i == 7) throw std::runtime_error(std::to_string(i));
                done[static_cast<size_t>(i)] = 1;
            });
            FAIL("nothing was thrown");
        } catch (const std::runtime_error& error) {
            CHECK(error.what() == std::string("7"));
        }
        CHECK(done[6] == 1);
    }
}
