#include "engine/files/half.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

using namespace kvscope::checkpoint;

TEST_CASE("every float16 becomes the float32 with the same value") {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const int exponent = static_cast<int>(bits >> 10 & 31);
        const int mantissa = static_cast<int>(bits & 1023);
        const float magnitude = exponent == 0    ? std::ldexp(static_cast<float>(mantissa), -24)
                                : exponent == 31 ? std::numeric_limits<float>::infinity()
                                                 : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
        const float value = f16_to_f32(static_cast<uint16_t>(bits));
        if (exponent == 31 && mantissa != 0) {
            REQUIRE(std::isnan(value));
        } else {
            REQUIRE(std::fabs(value) == magnitude);
        }
        REQUIRE(std::signbit(value) == (bits >= 0x8000));
    }
}

TEST_CASE("bfloat16 rounds to nearest, ties to even") {
    CHECK(f32_to_bf16(1.0f) == 0x3f80);
    CHECK(f32_to_bf16(std::bit_cast<float>(0x3f808000u)) == 0x3f80);
    CHECK(f32_to_bf16(std::bit_cast<float>(0x3f808001u)) == 0x3f81);
    CHECK(f32_to_bf16(std::bit_cast<float>(0x3f818000u)) == 0x3f82);
    CHECK(f32_to_bf16(std::bit_cast<float>(0xbf818000u)) == 0xbf82);
    CHECK(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
    CHECK(f32_to_bf16(std::numeric_limits<float>::infinity()) == 0x7f80);
    CHECK(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float value = bf16_to_f32(static_cast<uint16_t>(bits));
        if (!std::isnan(value)) REQUIRE(f32_to_bf16(value) == bits);
    }
}
