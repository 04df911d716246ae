#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/bf16.h"

using namespace kvscope::kernels;

TEST_CASE("every float16 becomes the float32 with the same value") {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const int exponent = static_cast<int>(bits >> 10 & 31);
        const int mantissa = static_cast<int>(bits & 1023);
        const float magnitude = exponent == 0    ? std::ldexp(static_cast<float>(mantissa), -24)
                                : exponent == 31 ? std::numeric_limits<float>::infinity()
                                                 : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
        const float value = to_float(half{static_cast<uint16_t>(bits)});
        if (exponent == 31 && mantissa != 0) {
            REQUIRE(std::isnan(value));
        } else {
            REQUIRE(std::fabs(value) == magnitude);
        }
        REQUIRE(std::signbit(value) == (bits >= 0x8000));
    }
}

TEST_CASE("bfloat16 rounds to nearest, ties to even") {
    CHECK(bf16_from_float(1.0f).bits == 0x3f80);
    CHECK(bf16_from_float(std::bit_cast<float>(0x3f808000u)).bits == 0x3f80);
    CHECK(bf16_from_float(std::bit_cast<float>(0x3f808001u)).bits == 0x3f81);
    CHECK(bf16_from_float(std::bit_cast<float>(0x3f818000u)).bits == 0x3f82);
    CHECK(bf16_from_float(std::bit_cast<float>(0xbf818000u)).bits == 0xbf82);
    CHECK(bf16_from_float(std::numeric_limits<float>::max()).bits == 0x7f80);
    CHECK(bf16_from_float(std::numeric_limits<float>::infinity()).bits == 0x7f80);
    CHECK(std::isnan(to_float(bf16_from_float(std::bit_cast<float>(0x7f800001u)))));
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float value = to_float(bf16{static_cast<uint16_t>(bits)});
        if (!std::isnan(value)) REQUIRE(bf16_from_float(value).bits == bits);
    }
}
