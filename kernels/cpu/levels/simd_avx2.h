#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/bf16.h"

namespace kvscope::kernels {

/// SimdGeneric's operations with 8 lanes, for AVX2 with FMA. Include only after `#pragma GCC target("avx2,fma,f16c")`.
struct SimdAvx2 {
    using vec = __m256;
    static constexpr int lanes = 8;
    static constexpr int tile_rows = 4;
    static constexpr int panel_rows = 4;
    static constexpr int direct_bf16_up_to = 8, direct_f32_up_to = 24;
    static constexpr int stored_bf16_up_to = 16, stored_f32_up_to = 96;
    static constexpr int direct_rows = 4;
    static constexpr int direct_outputs = 6;
    static constexpr int direct_registers = 16;

    [[nodiscard]] static int lane_of_pass(int pass) { return pass; }

    [[nodiscard]] static vec zero() { return _mm256_setzero_ps(); }
    [[nodiscard]] static vec set1(float x) { return _mm256_set1_ps(x); }
    [[nodiscard]] static vec load(const float* p) { return _mm256_loadu_ps(p); }
    static void store(float* p, vec x) { _mm256_storeu_ps(p, x); }
    [[nodiscard]] static vec load_bf16(const bf16* p) {
        const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    }
    static void load_bf16_halves(const bf16* p, vec& even, vec& odd) {
        const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        even = _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
        odd = _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
    }
    static void store_bf16(bf16* p, vec x) {
        const __m256i bits = _mm256_castps_si256(x);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
        const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
        const __m256i quiet = _mm256_srli_epi32(_mm256_or_si256(bits, _mm256_set1_epi32(0x00400000)), 16);
        const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
        const __m256i words = _mm256_blendv_epi8(rounded, quiet, is_nan);
        const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
    }
    static constexpr int byte_copies = 2;  ///< a copy in each half, because shuffles stay within a half
    [[nodiscard]] static __m256i load_bytes(const void* p) {
        return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p)));
    }
    [[nodiscard]] static __m256i bytes_of(uint64_t a, uint64_t b) {
        const auto low = static_cast<long long>(a), high = static_cast<long long>(b);
        return _mm256_set_epi64x(high, low, high, low);
    }
    template <class Bytes>
    [[nodiscard]] static vec from_bytes(Bytes x, int first) {
        // Moves each byte to the top of its 32-bit number, so that the sign is kept.
        const __m256i upper = _mm256_setr_epi32(0x00808080, 0x01808080, 0x02808080, 0x03808080, 0x04808080, 0x05808080,
                                                0x06808080, 0x07808080);
        const __m256i from = _mm256_add_epi32(upper, _mm256_set1_epi32(first << 24));
        return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(reinterpret_cast<__m256i>(x), from));
    }
    static constexpr float byte_factor = 0x1p-24f;
    static void from_nibbles(const uint8_t* p, vec (&x)[4]) {
        for (int i = 0; i < 2; ++i) {
            const __m256i both = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + i * lanes)));
            x[i] = _mm256_cvtepi32_ps(_mm256_and_si256(both, _mm256_set1_epi32(15)));
            x[i + 2] = _mm256_cvtepi32_ps(_mm256_srli_epi32(both, 4));
        }
    }
    [[nodiscard]] static float from_half(uint16_t bits) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits))); }
    static void from_sixteen_halves(const uint16_t* p, float* out) {
        for (int i = 0; i < 16; i += lanes)
            store(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i))));
    }
    [[nodiscard]] static vec rounded(vec x) {
        asm("" : "+x"(x));
        return x;
    }
    [[nodiscard]] static vec add(vec a, vec b) { return _mm256_add_ps(a, b); }
    [[nodiscard]] static vec sub(vec a, vec b) { return _mm256_sub_ps(a, b); }
    [[nodiscard]] static vec mul(vec a, vec b) { return _mm256_mul_ps(a, b); }
    [[nodiscard]] static vec div(vec a, vec b) { return _mm256_div_ps(a, b); }
    [[nodiscard]] static vec fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
    [[nodiscard]] static vec max(vec a, vec b) { return _mm256_max_ps(a, b); }

    [[nodiscard]] static vec select_between(vec x, vec key, vec low, vec high, vec otherwise) {
        const vec inside = _mm256_and_ps(_mm256_cmp_ps(key, low, _CMP_GE_OQ), _mm256_cmp_ps(key, high, _CMP_LE_OQ));
        return _mm256_blendv_ps(otherwise, x, inside);
    }

    [[nodiscard]] static vec exp2(vec x) {
        const vec clamped = max(set1(-126.0f), x);
        const vec magic = set1(0x1.8p23f + 127.0f);
        const vec rounded = add(clamped, magic);
        const vec r = sub(clamped, sub(rounded, magic));
        vec p = set1(1.535336188e-4f);
        p = fma(p, r, set1(1.339887440e-3f));
        p = fma(p, r, set1(9.618437357e-3f));
        p = fma(p, r, set1(5.550332471e-2f));
        p = fma(p, r, set1(2.402264791e-1f));
        p = fma(p, r, set1(6.931472028e-1f));
        p = fma(p, r, set1(1.0f));
        // The shift moves the integer part and the bias into the exponent's field. The multiplication keeps NaN.
        const vec power = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(rounded), 23));
        return _mm256_and_ps(mul(p, power), _mm256_cmp_ps(x, set1(-126.0f), _CMP_NLT_UQ));
    }

    [[nodiscard]] static float sum(vec x) {
        __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
        half = _mm_add_ps(half, _mm_movehl_ps(half, half));
        return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
    }
    [[nodiscard]] static float maximum(vec x) {
        __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
        half = _mm_max_ps(half, _mm_movehl_ps(half, half));
        return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
    }

    static void transpose(vec (&x)[lanes]) {
        vec pairs[lanes], quads[lanes];
        for (int i = 0; i < 4; ++i) {
            pairs[2 * i] = _mm256_unpacklo_ps(x[2 * i], x[2 * i + 1]);
            pairs[2 * i + 1] = _mm256_unpackhi_ps(x[2 * i], x[2 * i + 1]);
        }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) {
                quads[4 * i + 2 * j] = _mm256_shuffle_ps(pairs[4 * i + j], pairs[4 * i + j + 2], 0x44);
                quads[4 * i + 2 * j + 1] = _mm256_shuffle_ps(pairs[4 * i + j], pairs[4 * i + j + 2], 0xee);
            }
        for (int i = 0; i < 4; ++i) {
            x[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
            x[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
        }
    }

    [[nodiscard]] static vec fold(vec a, vec b, vec c, vec d) {
        return _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    }
    [[nodiscard]] static vec join_folded(const vec (&x)[lanes / 4]) {
        return add(_mm256_permute2f128_ps(x[0], x[1], 0x20), _mm256_permute2f128_ps(x[0], x[1], 0x31));
    }
};

}  // namespace kvscope::kernels
