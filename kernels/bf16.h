#pragma once

#include <bit>
#include <cstdint>

namespace kvscope::kernels {

/// The upper half of an IEEE f32; a storage type without arithmetic of its own.
struct bf16 {
    uint16_t bits;
};
static_assert(sizeof(bf16) == 2);

constexpr float to_float(bf16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }
constexpr float to_float(float value) { return value; }

/// Rounds to nearest, ties to even; NaN stays a (quiet) NaN.
constexpr bf16 bf16_from_float(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x0040u)};
    return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

/// Rounds to T, which is float (unchanged) or bf16.
template <class T>
constexpr T from_float(float value);
template <>
constexpr float from_float<float>(float value) {
    return value;
}
template <>
constexpr bf16 from_float<bf16>(float value) {
    return bf16_from_float(value);
}

}  // namespace kvscope::kernels
