#include "kernels/cpu_features.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/bf16.h"

using namespace kvscope::kernels;

TEST_CASE("a SIMD level is forced during an object's lifetime") {
    const SimdLevel before = simd_level();
    {
        const ForcedSimdLevel outer(SimdLevel::generic);
        CHECK(simd_level() == SimdLevel::generic);
        {
            const ForcedSimdLevel inner(supported_simd_level());
            CHECK(simd_level() == supported_simd_level());
        }
        CHECK(simd_level() == SimdLevel::generic);
    }
    CHECK(simd_level() == before);
    if (supported_simd_level() != SimdLevel::avx512_bf16)
        CHECK_THROWS_AS(ForcedSimdLevel(SimdLevel::avx512_bf16), std::invalid_argument);
}

TEST_CASE("bf16 rounds to nearest, ties to even") {
    const auto rounded = [](float x) { return to_float(bf16_from_float(x)); };
    CHECK(rounded(1.0f) == 1.0f);
    CHECK(rounded(1.0f + 0x1p-8f) == 1.0f);                // a tie, down to even
    CHECK(rounded(1.0f + 3 * 0x1p-8f) == 1.0f + 0x1p-6f);  // a tie, up to even
    CHECK(rounded(1.0f + 0x1p-8f + 0x1p-20f) == 1.0f + 0x1p-7f);
    CHECK(rounded(-2.5f) == -2.5f);
    CHECK(std::signbit(rounded(-0.0f)));
    CHECK(rounded(std::numeric_limits<float>::max()) == std::numeric_limits<float>::infinity());
    CHECK(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN())));
    CHECK(std::isnan(to_float(bf16_from_float(std::bit_cast<float>(0x7f800001u)))));
}
