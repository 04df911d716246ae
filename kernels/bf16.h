#pragma once

#include <bit>
#include <cstdint>

namespace kvscope::kernels {

/// bfloat16 storage: the upper half of an IEEE f32.
struct bf16 {
    uint16_t bits;
};
static_assert(sizeof(bf16) == 2);

[[nodiscard]] constexpr float to_float(bf16 value) {
    return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}
[[nodiscard]] constexpr float to_float(float value) { return value; }

/// Rounds to nearest, ties to even. NaN becomes a quiet NaN.
[[nodiscard]] constexpr bf16 bf16_from_float(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x0040u)};
    return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

/// IEEE 754 binary16 storage, including subnormals.
struct half {
    uint16_t bits;
};

[[nodiscard]] constexpr float to_float(half value) {
    const uint32_t sign = (value.bits & 0x8000u) << 16, magnitude = value.bits & 0x7fffu;
    // The shifted exponent is 112 too small; infinity and NaN need another 112.
    const uint32_t shifted = (magnitude << 13) + (112u << 23) + (magnitude >= 0x7c00u ? 112u << 23 : 0u);
    const auto subnormal = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
    return std::bit_cast<float>(sign | (magnitude < 0x0400u ? subnormal : shifted));
}

template <class T>
[[nodiscard]] constexpr T from_float(float value);
template <>
[[nodiscard]] constexpr float from_float<float>(float value) {
    return value;
}
template <>
[[nodiscard]] constexpr bf16 from_float<bf16>(float value) {
    return bf16_from_float(value);
}

}  // namespace kvscope::kernels
