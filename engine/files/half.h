#pragma once

#include <bit>
#include <cstdint>

namespace kvscope::checkpoint {

[[nodiscard]] inline float bf16_to_f32(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Rounds to nearest even. Returns a quiet NaN for NaN.
[[nodiscard]] inline uint16_t f32_to_bf16(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// Converts IEEE 754 binary16, including subnormals, without branches.
[[nodiscard]] inline float f16_to_f32(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    // The shifted exponent is too small by 112, and by 224 for infinities and NaNs.
    const uint32_t shifted = (magnitude << 13) + (112u << 23) + (magnitude >= 0x7c00u ? 112u << 23 : 0u);
    const auto subnormal = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
    return std::bit_cast<float>(sign | (magnitude < 0x0400u ? subnormal : shifted));
}

}  // namespace kvscope::checkpoint
