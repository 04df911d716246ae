#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/bf16.h"
#include "kernels/cpu/levels/level_kernels.h"

// GCC 12 warns of uninitialized operands inside its own AVX-512 intrinsics (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma,f16c,prefer-vector-width=512")
#include "kernels/cpu/levels/level_body.h"
#include "kernels/cpu/levels/simd_avx512.h"

namespace kvscope::kernels::avx512_bf16 {

namespace {

struct Simd : SimdAvx512 {
    static void store_bf16(bf16* p, vec x) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
    }
    using pairs = __m512bh;  ///< 32 numbers in the layout of the product instruction
    static pairs pairs_of(vec a, vec b) { return _mm512_cvtne2ps_pbh(b, a); }
    static void store_pairs(bf16* p, pairs x) { _mm512_storeu_si512(p, reinterpret_cast<__m512i>(x)); }

    // For weights of few bits, all possible numbers are rounded once into a table, where each weight is looked up.

    using indices = __m512i;  ///< 32 indices of 16 bits, of which only the lower four or five bits count
    /// Returns x * first, x * (first + 1), … in successive lanes.
    template <int first>
    static vec times_counted(vec x) {
        const vec counted =
            _mm512_setr_ps(0.f, 1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f, 9.f, 10.f, 11.f, 12.f, 13.f, 14.f, 15.f);
        return _mm512_mul_ps(_mm512_add_ps(counted, set1(first)), x);
    }
    /// Returns the lower halves of 16 bytes (with other bits above them), then the upper halves.
    static indices halves_of(const uint8_t* p) {
        const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
        const __m512i words = _mm512_cvtepu8_epi16(twice);
        return _mm512_mask_srli_epi16(words, 0xffff0000u, words, 4);
    }
    static indices bytes_of(const uint8_t* p, int shift) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return _mm512_srl_epi16(_mm512_cvtepu8_epi16(bytes), _mm_cvtsi32_si128(shift));
    }
    static indices with_fifth(indices x, uint32_t fifth) {
        const __m512i four = _mm512_and_si512(x, _mm512_set1_epi16(15));
        return _mm512_mask_mov_epi16(four, fifth, _mm512_or_si512(four, _mm512_set1_epi16(16)));
    }
    static uint32_t bit_of(const uint8_t* p, int bit) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return _mm256_test_epi8_mask(bytes, _mm256_set1_epi8(static_cast<char>(1 << bit)));
    }
    using table = __m512i;  ///< table of 32 rounded numbers
    static table table_of(vec low, vec high) { return reinterpret_cast<table>(_mm512_cvtne2ps_pbh(high, low)); }
    static pairs look_up(indices x, table numbers, bool last) {
        const indices four = _mm512_and_si512(x, _mm512_set1_epi16(15));
        return look_up(last ? _mm512_or_si512(four, _mm512_set1_epi16(16)) : four, numbers);
    }
    static pairs look_up(indices x, table numbers) {
        return reinterpret_cast<pairs>(_mm512_permutexvar_epi16(x, numbers));
    }
};

/// Multiplies pairs of bf16 and sums in f32 with one instruction.
struct PairProducts {
    typedef uint32_t elem;
    typedef uint32_t unaligned __attribute__((aligned(2), may_alias));
    using operand = __m512bh;
    static constexpr int per_step = 2;
    static constexpr bool wants_packed_bf16 = true;

    static operand load(const elem* p) { return reinterpret_cast<operand>(_mm512_loadu_si512(p)); }
    static operand broadcast(const elem* p) {
        return reinterpret_cast<operand>(_mm512_set1_epi32(static_cast<int>(*reinterpret_cast<const unaligned*>(p))));
    }
    static __m512 mac(__m512 acc, operand a, operand b) { return _mm512_dpbf16_ps(acc, a, b); }

    /// Stores the pairs (a[i], b[i]), rounded to nearest. Requires non-negative numbers.
    static void store_pair(elem* p, __m512 a, __m512 b) {
        const __m512i half = _mm512_set1_epi32(0x8000);
        const __m512i upper_words = _mm512_set_epi16(63, 31, 61, 29, 59, 27, 57, 25, 55, 23, 53, 21, 51, 19, 49, 17, 47,
                                                     15, 45, 13, 43, 11, 41, 9, 39, 7, 37, 5, 35, 3, 33, 1);
        const __m512i low = _mm512_add_epi32(_mm512_castps_si512(a), half);
        const __m512i high = _mm512_add_epi32(_mm512_castps_si512(b), half);
        _mm512_storeu_si512(p, _mm512_permutex2var_epi16(low, upper_words, high));
    }

    static __m512i pairs_from(int first) {
        const __m512i both = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38,
                                              6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
        return _mm512_add_epi16(both, _mm512_set1_epi16(static_cast<short>(first)));
    }

    /// Converts (count, d) rows to (ceil(count / 2), d) pairs of consecutive rows. Pairs an odd last row with zeros.
    static void interleave(const bf16* rows, int64_t count, int64_t d, elem* out) {
        for (int64_t row = 0; row < count; row += 2) {
            const bf16* a = rows + row * d;
            const bool paired = row + 1 < count;
            int64_t c = 0;
            for (; paired && c + 32 <= d; c += 32) {
                const __m512i low = _mm512_loadu_si512(a + c), high = _mm512_loadu_si512(a + d + c);
                uint32_t* to = out + row / 2 * d + c;
                _mm512_storeu_si512(to, _mm512_permutex2var_epi16(low, pairs_from(0), high));
                _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi16(low, pairs_from(16), high));
            }
            for (; c < d; c += 16) {
                const __mmask16 inside = d - c < 16 ? static_cast<__mmask16>((1u << (d - c)) - 1) : __mmask16{0xffff};
                const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(inside, a + c));
                const __mmask16 upper = paired ? inside : __mmask16{0};
                const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(upper, a + d + c));
                const __m512i pair = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
                _mm512_mask_storeu_epi32(out + row / 2 * d + c, inside, pair);
            }
        }
    }
};

struct PairRows : Bf16Rows<Simd> {
    using operand = __m512bh;
    static constexpr int step_elements = 32;
    static operand load(const bf16* p) { return reinterpret_cast<operand>(_mm512_loadu_si512(p)); }
    static __m512 mac(__m512 acc, operand a, operand b) { return _mm512_dpbf16_ps(acc, a, b); }
};

struct PairFactors {
    using T = bf16;
    using elem = bf16;
    using operand = __m512bh;
    static constexpr int step_elements = 32;
    static constexpr int parts_of_step = 1;
    static constexpr int part_elements = 32;
    template <int part>
    static operand load(const T* p) {
        return reinterpret_cast<operand>(_mm512_loadu_si512(p));
    }
    static operand load_packed(const elem* p) { return load<0>(p); }
    static void store_packed(elem* p, operand x) { _mm512_storeu_si512(p, reinterpret_cast<__m512i>(x)); }
    static operand everywhere(const elem* p) { return PairProducts::broadcast(reinterpret_cast<const uint32_t*>(p)); }
    static __m512 bits(operand x) { return reinterpret_cast<__m512>(x); }
    static operand of_bits(__m512 x) { return reinterpret_cast<operand>(x); }
    static __m512 mac(__m512 acc, operand a, operand b) { return _mm512_dpbf16_ps(acc, a, b); }
};

using PairBody = AttentionBlockBody<Simd, PairProducts>;

bool in_pairs(const AttentionBlock& block) {
    return block.q_dtype == DType::bf16 && block.kv_dtype == DType::bf16 && block.head_dim % 2 == 0;
}

size_t scratch_bytes(int group, int head_dim, int64_t n_keys, bool column_sums) {
    const size_t f32 = avx512::all_kernels.attention_block.scratch_bytes(group, head_dim, n_keys, column_sums);
    const size_t pairs = PairBody::scratch_bytes(group, head_dim, n_keys, column_sums);
    return f32 > pairs ? f32 : pairs;
}

void compute(const AttentionBlock& block, void* scratch) {
    if (in_pairs(block))
        PairBody::compute(block, scratch);
    else
        avx512::all_kernels.attention_block.compute(block, scratch);
}

void decode_segment(const DecodeSegment& segment, int head_dim, DType dtype, float scale) {
    if (dtype == DType::bf16)
        AttentionDecodeBody<Simd, PairRows>::segment_of_bf16(segment, head_dim, scale);
    else
        avx512::all_kernels.decode_segment(segment, head_dim, dtype, scale);
}

}  // namespace

LevelKernels make_kernels() {
    LevelKernels all = avx512::all_kernels;
    all.attention_block = {PairBody::queries_per_block, PairBody::fewest_queries, scratch_bytes, compute};
    all.decode_segment = decode_segment;
    all.linear_bf16 = make_linear_kernel<Simd, PairFactors>();
    all.decode_bf16 = ExpandWeightsBody<Simd>::decode<bf16>;
    return all;
}

}  // namespace kvscope::kernels::avx512_bf16
#endif
