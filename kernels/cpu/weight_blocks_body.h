#pragma once

// Included once per SIMD level, below its `#pragma GCC target`; see attention_block_body.h.

#include <cstdint>
#include <cstring>

#include "kernels/bf16.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {

/// Weights of a row as numbers. Whatever the format, 32 weights are integers, a factor for each 16 and, in some
/// formats, a number to add: factor q + offset, rounded after each operation, as ggml's reference does.
template <class Simd>
struct WeightBlocksBody {
    using vec = typename Simd::vec;
    static constexpr int kGroup = 32;
    /// Bytes ahead of what is decoded that are called in from memory.
    static constexpr size_t kAhead = 2048;

    /// Weights [begin, begin + count) of a row, both multiples of 32 (of any size in formats without blocks).
    template <class T>
    static void decode(WeightFormat format, const void* row, int64_t begin, int64_t count, T* out) {
        const auto* from = static_cast<const uint8_t*>(row);
        switch (format) {
            case WeightFormat::f32:
                return convert(reinterpret_cast<const float*>(from) + begin, count, out);
            case WeightFormat::bf16:
                return widen<false>(reinterpret_cast<const uint16_t*>(from) + begin, count, out);
            case WeightFormat::f16:
                return widen<true>(reinterpret_cast<const uint16_t*>(from) + begin, count, out);
            case WeightFormat::q4_0:
                return groups<q4_0>(from, begin, count, out);
            case WeightFormat::q4_1:
                return groups<q4_1>(from, begin, count, out);
            case WeightFormat::q5_0:
                return groups<q5_0>(from, begin, count, out);
            case WeightFormat::q5_1:
                return groups<q5_1>(from, begin, count, out);
            case WeightFormat::q8_0:
                return groups<q8_0>(from, begin, count, out);
            case WeightFormat::q2_k:
                return groups<q2_k>(from, begin, count, out);
            case WeightFormat::q3_k:
                return groups<q3_k>(from, begin, count, out);
            case WeightFormat::q4_k:
                return groups<q4_k>(from, begin, count, out);
            case WeightFormat::q5_k:
                return groups<q5_k>(from, begin, count, out);
            case WeightFormat::q6_k:
                return groups<q6_k>(from, begin, count, out);
        }
    }

 private:
    typedef uint8_t bytes __attribute__((vector_size(16)));
    typedef uint16_t words __attribute__((vector_size(16)));

    /// Of a block of many: a factor, and a number to add, for each 32 weights, or for each 16.
    struct Scales {
        alignas(64) float factors[16];
        alignas(64) float offsets[16];
        vec factor(int i) const { return Simd::set1(factors[i]); }
        vec offset(int i) const { return Simd::set1(offsets[i]); }
    };
    /// Of a block of 32 weights.
    struct Scale {
        vec of_all, added;
        vec factor(int) const { return of_all; }
        vec offset(int) const { return added; }
    };

    static float half_at(const uint8_t* p) {
        uint16_t bits;
        std::memcpy(&bits, p, sizeof bits);
        return Simd::from_half(bits);
    }
    static bytes load(const uint8_t* p) {
        bytes x;
        std::memcpy(&x, p, sizeof x);
        return x;
    }
    static uint32_t four_at(const uint8_t* p) {
        uint32_t x;
        std::memcpy(&x, p, sizeof x);
        return x;
    }
    /// Of each byte the bits from `shift` on that are in the mask; no more of them than are left in the byte.
    static bytes bits_of(bytes x, int shift, uint8_t mask) { return (bytes)((words)x >> shift) & mask; }
    /// Bytes without bits that would leave them.
    static bytes raised(bytes x, int shift) { return (bytes)((words)x << shift); }
    /// 16 signed bytes times a number.
    static void multiplied(bytes x, float by, float* out) {
#pragma GCC unroll 4
        for (int i = 0; i < 16; i += Simd::W) Simd::store(out + i, Simd::mul(Simd::from_bytes(x, i), Simd::set1(by)));
    }

    // ---- the formats -----------------------------------------------------------------------------------------------
    // `scales` takes those of the block at p, `read` the integers of its 32 weights number `part`, two's complement.

    /// The lower halves of 16 bytes, then the upper ones.
    [[gnu::always_inline]] static inline void nibbles(const uint8_t* p, bytes (&q)[2]) {
        const bytes x = load(p);
        q[0] = x & 15;
        q[1] = bits_of(x, 4, 15);
    }
    /// The same with a fifth bit from each of the 32 at `high`.
    [[gnu::always_inline]] static inline void fives(const uint8_t* p, const uint8_t* high, bytes (&q)[2]) {
        typedef uint64_t longs __attribute__((vector_size(16)));
        constexpr bytes each = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
        constexpr uint64_t everywhere = 0x0101010101010101;
        nibbles(p, q);
        const uint32_t all = four_at(high);
        for (int half = 0; half < 2; ++half) {
            const uint32_t bits = all >> (16 * half);
            const longs spread = {(bits & 255) * everywhere, (bits >> 8 & 255) * everywhere};
            q[half] |= (bytes)(((bytes)spread & each) == each) & 16;
        }
    }
    /// Numbers 0 ... less this one.
    [[gnu::always_inline]] static inline void lower(uint8_t zero, bytes (&q)[2]) {
        q[0] -= zero;
        q[1] -= zero;
    }

    /// @tparam lowest_number, numbers those that a weight's integer can be, where they are few; 1 and 0: where not
    template <WeightFormat which, bool adds, bool by_sixteens, int lowest_number = 1, int numbers = 0>
    struct Format {
        static constexpr int lowest = lowest_number, n_numbers = numbers;
        static constexpr WeightFormat format = which;
        static constexpr bool has_offset = adds;
        static constexpr bool scales_sixteens = by_sixteens;
    };
    struct q4_0 : Format<WeightFormat::q4_0, false, false, -8, 16> {
        template <class S>
        static auto indices(const uint8_t* p, int) {
            return S::halves_of(p + 2);
        }
        static void scales(const uint8_t* p, Scale& scale) { scale.of_all = Simd::half_everywhere(p); }
        static void read(const uint8_t* p, int, bytes (&q)[2]) {
            nibbles(p + 2, q);
            lower(8, q);
        }
    };
    template <WeightFormat which, int n>
    struct WithMinimum : Format<which, true, false, 0, n> {
        static void scales(const uint8_t* p, Scale& scale) { Simd::halves_everywhere(p, scale.of_all, scale.added); }
    };
    struct q4_1 : WithMinimum<WeightFormat::q4_1, 16> {
        template <class S>
        static auto indices(const uint8_t* p, int) {
            return S::halves_of(p + 4);
        }
        static void read(const uint8_t* p, int, bytes (&q)[2]) { nibbles(p + 4, q); }
    };
    struct q5_0 : Format<WeightFormat::q5_0, false, false, -16, 32> {
        template <class S>
        static auto indices(const uint8_t* p, int) {
            return S::with_fifth(S::halves_of(p + 6), four_at(p + 2));
        }
        static void scales(const uint8_t* p, Scale& scale) { scale.of_all = Simd::half_everywhere(p); }
        static void read(const uint8_t* p, int, bytes (&q)[2]) {
            fives(p + 6, p + 2, q);
            lower(16, q);
        }
    };
    struct q5_1 : WithMinimum<WeightFormat::q5_1, 32> {
        template <class S>
        static auto indices(const uint8_t* p, int) {
            return S::with_fifth(S::halves_of(p + 8), four_at(p + 4));
        }
        static void read(const uint8_t* p, int, bytes (&q)[2]) { fives(p + 8, p + 4, q); }
    };
    struct q8_0 : Format<WeightFormat::q8_0, false, false> {
        static void scales(const uint8_t* p, Scale& scale) { scale.of_all = Simd::half_everywhere(p); }
        static void read(const uint8_t* p, int, bytes (&q)[2]) {
            q[0] = load(p + 2);
            q[1] = load(p + 18);
        }
    };
    struct q2_k : Format<WeightFormat::q2_k, true, true> {
        static void scales(const uint8_t* p, Scales& all) {
            multiplied(load(p) & 15, half_at(p + 80), all.factors);
            multiplied(bits_of(load(p), 4, 15), -half_at(p + 82), all.offsets);
        }
        static void read(const uint8_t* p, int part, bytes (&q)[2]) {
            for (int half = 0; half < 2; ++half)
                q[half] = bits_of(load(p + 16 + part / 4 * 32 + 16 * half), part % 4 * 2, 3);
        }
    };
    struct q3_k : Format<WeightFormat::q3_k, false, true> {
        /// Of 16 scales of 6 bits the lower four are in 8 bytes, the upper two in 4.
        static void scales(const uint8_t* p, Scales& all) {
            typedef uint32_t fours __attribute__((vector_size(16)));
            const uint32_t a = four_at(p + 96), b = four_at(p + 100), high = four_at(p + 104);
            const fours low = {a & 0x0f0f0f0f, b & 0x0f0f0f0f, a >> 4 & 0x0f0f0f0f, b >> 4 & 0x0f0f0f0f};
            const fours upper = {high & 0x03030303, high >> 2 & 0x03030303, high >> 4 & 0x03030303,
                                 high >> 6 & 0x03030303};
            multiplied((bytes)(low | upper << 4) - 32, half_at(p + 108), all.factors);
        }
        static void read(const uint8_t* p, int part, bytes (&q)[2]) {
            for (int half = 0; half < 2; ++half)
                q[half] = bits_of(load(p + 32 + part / 4 * 32 + 16 * half), part % 4 * 2, 3) |
                          raised(bits_of(load(p + 16 * half), part, 1), 2);
            lower(4, q);
        }
    };
    template <WeightFormat which, int n>
    struct WithSixBits : Format<which, true, false, 0, n> {
        /// 8 scales and 8 minima of 6 bits in 12 bytes: the upper bits of the first four of each hold those of the
        /// others.
        static void scales(const uint8_t* p, Scales& all) {
            typedef uint32_t fours __attribute__((vector_size(16)));
            const uint32_t a = four_at(p + 4), b = four_at(p + 8), c = four_at(p + 12);
            const fours numbers = {a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4, b & 0x3f3f3f3f,
                                   (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4};
            alignas(64) float minima[16];
            multiplied((bytes)numbers, half_at(p), all.factors);
            multiplied((bytes)numbers, -half_at(p + 2), minima);
            std::memcpy(all.offsets, minima + 8, 8 * sizeof(float));
        }
    };
    struct q4_k : WithSixBits<WeightFormat::q4_k, 16> {
        template <class S>
        static auto indices(const uint8_t* p, int part) {
            return S::bytes_of(p + 16 + part / 2 * 32, part % 2 * 4);
        }
        static void read(const uint8_t* p, int part, bytes (&q)[2]) {
            for (int half = 0; half < 2; ++half)
                q[half] = bits_of(load(p + 16 + part / 2 * 32 + 16 * half), part % 2 * 4, 15);
        }
    };
    struct q5_k : WithSixBits<WeightFormat::q5_k, 32> {
        template <class S>
        static auto indices(const uint8_t* p, int part) {
            return S::with_fifth(S::bytes_of(p + 48 + part / 2 * 32, part % 2 * 4), S::bit_of(p + 16, part));
        }
        static void read(const uint8_t* p, int part, bytes (&q)[2]) {
            for (int half = 0; half < 2; ++half)
                q[half] = bits_of(load(p + 48 + part / 2 * 32 + 16 * half), part % 2 * 4, 15) |
                          raised(bits_of(load(p + 16 + 16 * half), part, 1), 4);
        }
    };
    struct q6_k : Format<WeightFormat::q6_k, false, true> {
        static void scales(const uint8_t* p, Scales& all) { multiplied(load(p + 192), half_at(p + 208), all.factors); }
        static void read(const uint8_t* p, int part, bytes (&q)[2]) {
            const int within = part % 4;
            const uint8_t* low = p + part / 4 * 64 + within % 2 * 32;
            const uint8_t* high = p + 128 + part / 4 * 32;
            for (int half = 0; half < 2; ++half)
                q[half] = bits_of(load(low + 16 * half), within / 2 * 4, 15) |
                          raised(bits_of(load(high + 16 * half), 2 * within, 3), 4);
            lower(32, q);
        }
    };

    // ---- numbers of them -------------------------------------------------------------------------------------------

    static void store(float* to, vec x) { Simd::store(to, x); }
    static void store(bf16* to, vec x) { Simd::store_bf16(to, x); }
    template <class T>
    static void store_two(T* to, vec a, vec b) {
        if constexpr (sizeof(T) == sizeof(bf16) && requires { Simd::store_two(to, a, b); }) {
            Simd::store_two(to, a, b);
        } else {
            store(to, a);
            store(to + Simd::W, b);
        }
    }

    template <class F>
    [[gnu::always_inline]] static inline vec numbers(float first, vec factor, vec offset) {
        const vec x = Simd::mul(Simd::count_from(first), factor);
        return F::has_offset ? Simd::add(Simd::rounded(x), offset) : x;
    }

    template <class F, class Scaled, class T>
    [[gnu::always_inline]] static inline void group(const uint8_t* p, int part, const Scaled& scales, T* out) {
        if constexpr (sizeof(T) == sizeof(bf16) && requires { Simd::halves_of(p); } && F::lowest <= 0) {
            constexpr float first = F::lowest;
            const vec factor = scales.factor(part), offset = F::has_offset ? scales.offset(part) : Simd::zero();
            const auto at = F::template indices<Simd>(p, part);
            if constexpr (F::n_numbers == 16)
                Simd::look_up(out, at, numbers<F>(first, factor, offset));
            else
                Simd::look_up(out, at, numbers<F>(first, factor, offset), numbers<F>(first + 16, factor, offset));
            return;
        }
        bytes q[2];
        F::read(p, part, q);
#pragma GCC unroll 8
        for (int i = 0; i < kGroup; i += 2 * Simd::W) {
            vec x[2];
            for (int k = 0; k < 2; ++k) {
                const int first = i + k * Simd::W, at = F::scales_sixteens ? 2 * part + first / 16 : part;
                x[k] = Simd::mul(Simd::from_bytes(q[first / 16], first % 16), scales.factor(at));
                if constexpr (F::has_offset) x[k] = Simd::add(Simd::rounded(x[k]), scales.offset(at));
            }
            store_two(out + i, x[0], x[1]);
        }
    }

    template <class F, class T>
    static void groups(const uint8_t* row, int64_t begin, int64_t count, T* out) {
        if constexpr (block_of(F::format).n == kGroup)
            small_blocks<F>(row, begin, count, out);
        else
            large_blocks<F>(row, begin, count, out);
    }

    template <class F, class T>
    static void small_blocks(const uint8_t* row, int64_t begin, int64_t count, T* out) {
        constexpr size_t bytes_of_block = block_of(F::format).bytes;
        const uint8_t* p = row + static_cast<size_t>(begin / kGroup) * bytes_of_block;
        for (int64_t i = 0; i < count; i += kGroup, p += bytes_of_block) {
            __builtin_prefetch(p + kAhead);
            Scale scale;
            F::scales(p, scale);
            group<F>(p, 0, scale, out + i);
        }
    }

    template <class F, class T>
    static void large_blocks(const uint8_t* row, int64_t begin, int64_t count, T* out) {
        constexpr WeightBlock block = block_of(F::format);
        const int64_t end = begin + count;
        for (int64_t at = begin; at < end;) {
            const uint8_t* p = row + static_cast<size_t>(at / block.n) * block.bytes;
            const int64_t of_next = at / block.n * block.n + block.n, until = of_next < end ? of_next : end;
            for (size_t line = 0; line < block.bytes; line += 64) __builtin_prefetch(p + kAhead + line);
            Scales scales;
            F::scales(p, scales);
            if (until - at == block.n) {  // the usual case, whose shifts are constants
#pragma GCC unroll 8
                for (int part = 0; part < block.n / kGroup; ++part) group<F>(p, part, scales, out + part * kGroup);
            } else {
                for (int64_t i = at; i < until; i += kGroup)
                    group<F>(p, static_cast<int>(i % block.n / kGroup), scales, out + (i - at));
            }
            out += until - at;
            at = until;
        }
    }

    static void convert(const float* from, int64_t count, float* out) {
        std::memcpy(out, from, static_cast<size_t>(count) * sizeof(float));
    }
    static void convert(const float* from, int64_t count, bf16* out) {
        for (int64_t i = 0; i < count; ++i) out[i] = bf16_from_float(from[i]);
    }

    template <bool is_half, class T>
    static void widen(const uint16_t* from, int64_t count, T* out) {
        for (int64_t i = 0; i < count; ++i)
            out[i] = from_float<T>(is_half ? Simd::from_half(from[i]) : to_float(bf16{from[i]}));
    }
};

}  // namespace kvscope::kernels
