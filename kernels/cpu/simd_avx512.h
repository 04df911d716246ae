#pragma once

#include <immintrin.h>

#include "kernels/bf16.h"

namespace kvscope::kernels {

/// As SimdGeneric, 16 lanes. Include only below `#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")`.
struct SimdAvx512 {
    using vec = __m512;
    static constexpr int W = 16;
    static constexpr int tile_rows = 8;

    static vec zero() { return _mm512_setzero_ps(); }
    static vec set1(float x) { return _mm512_set1_ps(x); }
    static vec load(const float* p) { return _mm512_loadu_ps(p); }
    static void store(float* p, vec x) { _mm512_storeu_ps(p, x); }
    static vec load_bf16(const bf16* p) {
        const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    }
    static void store_bf16(bf16* p, vec x) {
        const __m512i bits = _mm512_castps_si512(x);
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
        const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x00400000));
        const __m512i chosen = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quiet);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(chosen, 16)));
    }
    static vec add(vec a, vec b) { return _mm512_add_ps(a, b); }
    static vec sub(vec a, vec b) { return _mm512_sub_ps(a, b); }
    static vec mul(vec a, vec b) { return _mm512_mul_ps(a, b); }
    static vec div(vec a, vec b) { return _mm512_div_ps(a, b); }
    static vec fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
    static vec max(vec a, vec b) { return _mm512_max_ps(a, b); }

    static vec select_between(vec x, vec key, vec low, vec high, vec otherwise) {
        const __mmask16 inside =
            _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(key, low, _CMP_GE_OQ), key, high, _CMP_LE_OQ);
        return _mm512_mask_mov_ps(otherwise, inside, x);
    }

    /// Sixteenths of the exponent come from a table in one register, so that a cubic suffices for the rest.
    static vec exp2(vec x) {
        const vec table = _mm512_setr_ps(1.0f, 1.044273782f, 1.090507733f, 1.138788635f, 1.189207115f, 1.241857812f,
                                         1.296839555f, 1.354255547f, 1.414213562f, 1.476826146f, 1.542210825f,
                                         1.610490332f, 1.681792831f, 1.756252160f, 1.834008086f, 1.915206561f);
        const vec magic = set1(0x1.8p19f);  // its last place is a sixteenth
        const vec rounded = add(x, magic);
        const vec sixteenths = sub(rounded, magic);
        const vec r = sub(x, sixteenths);
        vec p = fma(set1(5.550410867e-2f), r, set1(2.402265070e-1f));
        p = fma(p, r, set1(6.931471806e-1f));
        p = fma(p, r, set1(1.0f));
        p = mul(p, _mm512_permutexvar_ps(_mm512_castps_si512(rounded), table));
        return _mm512_scalef_ps(p, sixteenths);
    }

    static float sum(vec x) { return _mm512_reduce_add_ps(x); }
    static float maximum(vec x) { return _mm512_reduce_max_ps(x); }

    static void transpose(vec (&x)[W]) {
        vec a[W], b[W];
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

    static vec sum_each(vec (&x)[W]) {
        // Halves the number of vectors and doubles the terms in each lane, four times.
        vec a[8], b[4];
        for (int i = 0; i < 8; ++i)
            a[i] = add(_mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]), _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]));
        for (int i = 0; i < 4; ++i)
            b[i] =
                add(_mm512_shuffle_ps(a[2 * i], a[2 * i + 1], 0x44), _mm512_shuffle_ps(a[2 * i], a[2 * i + 1], 0xee));
        const vec c0 = add(_mm512_shuffle_f32x4(b[0], b[1], 0x88), _mm512_shuffle_f32x4(b[0], b[1], 0xdd));
        const vec c1 = add(_mm512_shuffle_f32x4(b[2], b[3], 0x88), _mm512_shuffle_f32x4(b[2], b[3], 0xdd));
        return add(_mm512_shuffle_f32x4(c0, c1, 0x88), _mm512_shuffle_f32x4(c0, c1, 0xdd));
    }
};

}  // namespace kvscope::kernels
