#pragma once

#include <immintrin.h>

#include "kernels/bf16.h"

namespace kvscope::kernels {

/// SimdGeneric's operations with 16 lanes. Include after `#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")`.
struct SimdAvx512 {
    using vec = __m512;
    static constexpr int lanes = 16;
    static constexpr int tile_rows = 8;
    static constexpr int panel_rows = 8;
    static constexpr int direct_bf16_up_to = 26, direct_f32_up_to = 26;
    static constexpr int stored_bf16_up_to = 26, stored_f32_up_to = 26;
    static constexpr int direct_rows = 13;
    static constexpr int direct_outputs = 4;
    static constexpr int direct_registers = 29;

    /// Returns the lane of a pass. The first and third of every four lanes are added before the second and fourth.
    [[nodiscard]] static int lane_of_pass(int pass) { return (pass & ~3) | (pass & 1) << 1 | (pass & 2) >> 1; }

    [[nodiscard]] static vec zero() { return _mm512_setzero_ps(); }
    [[nodiscard]] static vec set1(float x) { return _mm512_set1_ps(x); }
    [[nodiscard]] static vec load(const float* p) { return _mm512_loadu_ps(p); }
    static void store(float* p, vec x) { _mm512_storeu_ps(p, x); }
    [[nodiscard]] static vec load_bf16(const bf16* p) {
        const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    }
    static void load_bf16_halves(const bf16* p, vec& even, vec& odd) {
        const __m512i both = _mm512_loadu_si512(p);
        even = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
        odd = _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
    }
    static void store_bf16(bf16* p, vec x) {
        const __m512i bits = _mm512_castps_si512(x);
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
        const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x00400000));
        const __m512i chosen = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quiet);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(chosen, 16)));
    }
    template <class Bytes>
    [[nodiscard]] static vec from_bytes(Bytes x, int) {
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(reinterpret_cast<__m128i>(x)));
    }
    static constexpr int byte_copies = 1;
    static constexpr float byte_factor = 1;
    [[nodiscard]] static float from_half(uint16_t bits) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits))); }
    static void from_sixteen_halves(const uint16_t* p, float* out) {
        store(out, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
    }
    [[nodiscard]] static vec rounded(vec x) {
        asm("" : "+v"(x));
        return x;
    }
    [[nodiscard]] static vec add(vec a, vec b) { return _mm512_add_ps(a, b); }
    [[nodiscard]] static vec sub(vec a, vec b) { return _mm512_sub_ps(a, b); }
    [[nodiscard]] static vec mul(vec a, vec b) { return _mm512_mul_ps(a, b); }
    [[nodiscard]] static vec div(vec a, vec b) { return _mm512_div_ps(a, b); }
    [[nodiscard]] static vec fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
    [[nodiscard]] static vec max(vec a, vec b) { return _mm512_max_ps(a, b); }

    [[nodiscard]] static vec select_between(vec x, vec key, vec low, vec high, vec otherwise) {
        const __mmask16 inside =
            _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(key, low, _CMP_GE_OQ), key, high, _CMP_LE_OQ);
        return _mm512_mask_mov_ps(otherwise, inside, x);
    }

    /// Looks up powers of 2^(1/16) in a table in one register, so that a cubic polynomial suffices for the remainder.
    [[nodiscard]] static vec exp2(vec x) {
        // At -127 the exponent's field is empty, so smaller values become 0. The clamp also keeps the compiler from
        // fusing a product in x with the additions below. This order of arguments keeps NaN.
        const vec clamped = max(set1(-127.0f), x);
        const vec magic = set1(0x1.8p19f);  // the last place is one sixteenth
        const vec rounded = add(clamped, magic);
        const vec r = sub(clamped, sub(rounded, magic));
        const __m512i sixteenths = _mm512_castps_si512(rounded);
        // Entry i is bits(2^(i / 16)) - (i << 19). Adding n << 19 to entry n % 16 gives the bits of 2^(n / 16).
        const __m512i table = _mm512_setr_epi32(0x3f800000, 0x3f7daac3, 0x3f7b95c2, 0x3f79c3d3, 0x3f7837f0, 0x3f76f532,
                                                0x3f75fed7, 0x3f75583f, 0x3f7504f3, 0x3f7508a4, 0x3f75672a, 0x3f76248c,
                                                0x3f7744fd, 0x3f78ccdf, 0x3f7ac0c7, 0x3f7d257d);
        const __m512i scale =
            _mm512_add_epi32(_mm512_slli_epi32(sixteenths, 19), _mm512_permutexvar_epi32(sixteenths, table));
        const vec power = _mm512_castsi512_ps(scale);
        vec q = fma(set1(5.550410867e-2f), r, set1(2.402265070e-1f));
        q = fma(q, r, set1(6.931471806e-1f));
        return fma(mul(power, r), q, power);
    }

    [[nodiscard]] static float sum(vec x) { return _mm512_reduce_add_ps(x); }
    [[nodiscard]] static float maximum(vec x) { return _mm512_reduce_max_ps(x); }

    static void transpose(vec (&x)[lanes]) {
        vec a[lanes], b[lanes];
        for (int i = 0; i < 8; ++i) {
            a[2 * i] = _mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]);
            a[2 * i + 1] = _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]);
        }
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 2; ++j) {
                b[4 * i + 2 * j] = _mm512_shuffle_ps(a[4 * i + j], a[4 * i + j + 2], 0x44);
                b[4 * i + 2 * j + 1] = _mm512_shuffle_ps(a[4 * i + j], a[4 * i + j + 2], 0xee);
            }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 4; ++j) {
                a[8 * i + j] = _mm512_shuffle_f32x4(b[8 * i + j], b[8 * i + j + 4], 0x88);
                a[8 * i + j + 4] = _mm512_shuffle_f32x4(b[8 * i + j], b[8 * i + j + 4], 0xdd);
            }
        for (int j = 0; j < 8; ++j) {
            x[j] = _mm512_shuffle_f32x4(a[j], a[j + 8], 0x88);
            x[j + 8] = _mm512_shuffle_f32x4(a[j], a[j + 8], 0xdd);
        }
    }

    [[nodiscard]] static vec fold(vec a, vec b, vec c, vec d) {
        const vec ab = add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        const vec cd = add(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        return add(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    }
    [[nodiscard]] static vec join_folded(const vec (&x)[lanes / 4]) {
        const vec low = add(_mm512_shuffle_f32x4(x[0], x[1], 0x88), _mm512_shuffle_f32x4(x[0], x[1], 0xdd));
        const vec high = add(_mm512_shuffle_f32x4(x[2], x[3], 0x88), _mm512_shuffle_f32x4(x[2], x[3], 0xdd));
        return add(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xdd));
    }
};

}  // namespace kvscope::kernels
