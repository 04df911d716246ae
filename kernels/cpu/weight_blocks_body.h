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
    struct Group {
        alignas(64) int8_t q[kGroup];
        float factor[2];
        float offset[2];
    };

    static float half_at(const uint8_t* p) {
        uint16_t bits;
        std::memcpy(&bits, p, sizeof bits);
        return Simd::from_half(bits);
    }

    // ---- the formats -----------------------------------------------------------------------------------------------
    // `read` takes the 32 weights number `part` of the block at `p`.

    /// The lower halves of 16 bytes, then the upper ones, each less `zero`.
    [[gnu::always_inline]] static inline void nibbles(const uint8_t* p, int zero, Group& group) {
        for (int i = 0; i < 16; ++i) group.q[i] = static_cast<int8_t>((p[i] & 15) - zero);
        for (int i = 0; i < 16; ++i) group.q[16 + i] = static_cast<int8_t>((p[i] >> 4) - zero);
    }
    /// The same with a fifth bit from each of the 32 at `high`.
    [[gnu::always_inline]] static inline void fives(const uint8_t* p, const uint8_t* high, int zero, Group& group) {
        uint32_t bits;
        std::memcpy(&bits, high, sizeof bits);
        alignas(64) int8_t fifth[kGroup];
        for (int i = 0; i < kGroup; ++i) fifth[i] = static_cast<int8_t>((bits >> i & 1) << 4);
        nibbles(p, zero, group);
        for (int i = 0; i < kGroup; ++i) group.q[i] = static_cast<int8_t>(group.q[i] + fifth[i]);
    }

    struct q4_0 {
        static constexpr WeightFormat format = WeightFormat::q4_0;
        static constexpr bool has_offset = false;
        static void read(const uint8_t* p, int, Group& group) {
            group.factor[0] = group.factor[1] = half_at(p);
            nibbles(p + 2, 8, group);
        }
    };
    struct q4_1 {
        static constexpr WeightFormat format = WeightFormat::q4_1;
        static constexpr bool has_offset = true;
        static void read(const uint8_t* p, int, Group& group) {
            group.factor[0] = group.factor[1] = half_at(p);
            group.offset[0] = group.offset[1] = half_at(p + 2);
            nibbles(p + 4, 0, group);
        }
    };
    struct q5_0 {
        static constexpr WeightFormat format = WeightFormat::q5_0;
        static constexpr bool has_offset = false;
        static void read(const uint8_t* p, int, Group& group) {
            group.factor[0] = group.factor[1] = half_at(p);
            fives(p + 6, p + 2, 16, group);
        }
    };
    struct q5_1 {
        static constexpr WeightFormat format = WeightFormat::q5_1;
        static constexpr bool has_offset = true;
        static void read(const uint8_t* p, int, Group& group) {
            group.factor[0] = group.factor[1] = half_at(p);
            group.offset[0] = group.offset[1] = half_at(p + 2);
            fives(p + 8, p + 4, 0, group);
        }
    };
    struct q8_0 {
        static constexpr WeightFormat format = WeightFormat::q8_0;
        static constexpr bool has_offset = false;
        static void read(const uint8_t* p, int, Group& group) {
            group.factor[0] = group.factor[1] = half_at(p);
            std::memcpy(group.q, p + 2, kGroup);
        }
    };
    struct q2_k {
        static constexpr WeightFormat format = WeightFormat::q2_k;
        static constexpr bool has_offset = true;
        static void read(const uint8_t* p, int part, Group& group) {
            const uint8_t* bits = p + 16 + part / 4 * 32;
            const int shift = part % 4 * 2;
            for (int i = 0; i < kGroup; ++i) group.q[i] = static_cast<int8_t>(bits[i] >> shift & 3);
            for (int half = 0; half < 2; ++half) {
                const uint8_t scale = p[2 * part + half];
                group.factor[half] = half_at(p + 80) * static_cast<float>(scale & 15);
                group.offset[half] = -(half_at(p + 82) * static_cast<float>(scale >> 4));
            }
        }
    };
    struct q3_k {
        static constexpr WeightFormat format = WeightFormat::q3_k;
        static constexpr bool has_offset = false;
        /// Of 16 scales of 6 bits: the lower four at 0 ... 7, the upper two at 8 ... 11.
        static int scale(const uint8_t* p, int i) {
            const int low = i < 8 ? p[i] & 15 : p[i - 8] >> 4;
            return low | (p[8 + i % 4] >> (i / 4 * 2) & 3) << 4;
        }
        static void read(const uint8_t* p, int part, Group& group) {
            const uint8_t* bits = p + 32 + part / 4 * 32;
            const int shift = part % 4 * 2;
            for (int i = 0; i < kGroup; ++i)
                group.q[i] = static_cast<int8_t>((bits[i] >> shift & 3) - (p[i] >> part & 1 ? 0 : 4));
            for (int half = 0; half < 2; ++half)
                group.factor[half] = half_at(p + 108) * static_cast<float>(scale(p + 96, 2 * part + half) - 32);
        }
    };
    /// Of 8 pairs of 6 bits in 12 bytes: the scale and the minimum of part i.
    static void scale_and_minimum(const uint8_t* p, int i, int& scale, int& minimum) {
        if (i < 4) {
            scale = p[i] & 63;
            minimum = p[i + 4] & 63;
        } else {
            scale = (p[i + 4] & 15) | (p[i - 4] >> 6) << 4;
            minimum = p[i + 4] >> 4 | (p[i] >> 6) << 4;
        }
    }
    static void scaled(const uint8_t* p, int part, Group& group) {
        int scale, minimum;
        scale_and_minimum(p + 4, part, scale, minimum);
        group.factor[0] = group.factor[1] = half_at(p) * static_cast<float>(scale);
        group.offset[0] = group.offset[1] = -(half_at(p + 2) * static_cast<float>(minimum));
    }
    struct q4_k {
        static constexpr WeightFormat format = WeightFormat::q4_k;
        static constexpr bool has_offset = true;
        static void read(const uint8_t* p, int part, Group& group) {
            scaled(p, part, group);
            const uint8_t* bits = p + 16 + part / 2 * 32;
            const int shift = part % 2 * 4;
            for (int i = 0; i < kGroup; ++i) group.q[i] = static_cast<int8_t>(bits[i] >> shift & 15);
        }
    };
    struct q5_k {
        static constexpr WeightFormat format = WeightFormat::q5_k;
        static constexpr bool has_offset = true;
        static void read(const uint8_t* p, int part, Group& group) {
            scaled(p, part, group);
            const uint8_t *high = p + 16, *bits = p + 48 + part / 2 * 32;
            const int shift = part % 2 * 4;
            for (int i = 0; i < kGroup; ++i)
                group.q[i] = static_cast<int8_t>((bits[i] >> shift & 15) + ((high[i] >> part & 1) << 4));
        }
    };
    struct q6_k {
        static constexpr WeightFormat format = WeightFormat::q6_k;
        static constexpr bool has_offset = false;
        static void read(const uint8_t* p, int part, Group& group) {
            const int within = part % 4;
            const uint8_t* low = p + part / 4 * 64 + within % 2 * 32;
            const uint8_t* high = p + 128 + part / 4 * 32;
            const int shift = within / 2 * 4;
            for (int i = 0; i < kGroup; ++i)
                group.q[i] = static_cast<int8_t>(((low[i] >> shift & 15) | (high[i] >> (2 * within) & 3) << 4) - 32);
            for (int half = 0; half < 2; ++half)
                group.factor[half] =
                    half_at(p + 208) * static_cast<float>(static_cast<int8_t>(p[192 + 2 * part + half]));
        }
    };

    // ---- numbers of them -------------------------------------------------------------------------------------------

    static void store(float* to, vec x) { Simd::store(to, x); }
    static void store(bf16* to, vec x) { Simd::store_bf16(to, x); }

    template <bool has_offset, class T>
    [[gnu::always_inline]] static inline void write(const Group& group, T* out) {
#pragma GCC unroll 8
        for (int i = 0; i < kGroup; i += Simd::W) {
            vec x = Simd::mul(Simd::from_bytes(group.q + i), Simd::set1(group.factor[i / 16]));
            if constexpr (has_offset) x = Simd::add(Simd::rounded(x), Simd::set1(group.offset[i / 16]));
            store(out + i, x);
        }
    }

    template <class Format, class T>
    static void groups(const uint8_t* row, int64_t begin, int64_t count, T* out) {
        constexpr WeightBlock block = block_of(Format::format);
        constexpr int parts = static_cast<int>(block.n / kGroup);
        for (int64_t i = 0; i < count / kGroup; ++i) {
            const int64_t at = begin / kGroup + i;
            Group group;
            Format::read(row + static_cast<size_t>(at / parts) * block.bytes, static_cast<int>(at % parts), group);
            write<Format::has_offset>(group, out + i * kGroup);
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
