#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/bf16.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {

/// Decodes stored weights, factor * q + offset with integers q, rounded after each operation like ggml's reference.
template <class Simd>
struct ExpandWeightsBody {
    using vec = typename Simd::vec;
    static constexpr int group_weights = 32;
    static constexpr size_t prefetch_bytes = 2048;  ///< prefetch distance in bytes

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
            default:
                with_blocks(format, [&](auto of) { groups<decltype(of)>(from, begin, count, out); });
        }
    }

    /// Decodes four rows to out, out + stride, … This is faster than row by row. Requires count <= most_together.
    template <class T>
    static void decode(WeightFormat format, const uint8_t* const (&rows)[4], int64_t begin, int64_t count, size_t ahead,
                       T* out, int64_t stride) {
        if (with_blocks(format, [&](auto of) { four_rows<decltype(of)>(rows, begin, count, ahead, out, stride); }))
            return;
        for (int r = 0; r < 4; ++r) decode(format, static_cast<const void*>(rows[r]), begin, count, out + r * stride);
    }

    template <class Call>
    static bool with_blocks(WeightFormat format, const Call& call) {
        switch (format) {
            case WeightFormat::f32:
            case WeightFormat::bf16:
            case WeightFormat::f16:
                return false;
            case WeightFormat::q4_0:
                call(q4_0{});
                break;
            case WeightFormat::q4_1:
                call(q4_1{});
                break;
            case WeightFormat::q5_0:
                call(q5_0{});
                break;
            case WeightFormat::q5_1:
                call(q5_1{});
                break;
            case WeightFormat::q8_0:
                call(q8_0{});
                break;
            case WeightFormat::q2_k:
                call(q2_k{});
                break;
            case WeightFormat::q3_k:
                call(q3_k{});
                break;
            case WeightFormat::q4_k:
                call(q4_k{});
                break;
            case WeightFormat::q5_k:
                call(q5_k{});
                break;
            case WeightFormat::q6_k:
                call(q6_k{});
                break;
        }
        return true;
    }

    static constexpr bool has_pairs = requires { typename Simd::pairs; };

    /// Whether the level decodes the two numbers of a byte together.
    template <class F>
    static constexpr bool shares_bytes = requires(const uint8_t* p, vec (&x)[group_weights / Simd::lanes]) {
        Simd::from_nibbles(F::nibbles_at(p), x);
    };

    static constexpr int64_t most_together = 2048;  ///< largest number of weights of a row that are processed together

    template <class F>
    struct Scales {
        static constexpr WeightBlock block_size = block_size_of_format(F::format);
        static constexpr int64_t most_scales = (most_together + block_size.n) / (F::scales_sixteens ? 16 : 32);
        static constexpr int halves_of_block = F::has_offset ? 2 : 1;  ///< halves at the beginning of a block of 32
        static constexpr float b = shares_bytes<F> ? 1 : Simd::byte_factor, o = F::has_offset ? 1 : b;
        alignas(64) static constexpr float byte_factors[16] = {b, o, b, o, b, o, b, o, b, o, b, o, b, o, b, o};
        /// Factors of the weights. They include byte_factor if from_bytes() divides the integers by byte_factor.
        alignas(64) float factors[most_scales * (block_size.n == group_weights ? halves_of_block : 1) + 16];
        alignas(64) float offsets[block_size.n != group_weights && F::has_offset ? most_scales + 16 : 1];

        template <int R>
        static void read(const uint8_t* const (&rows)[R], int64_t begin, int64_t count, Scales (&scales)[R]) {
            const int64_t n = (begin + count + block_size.n - 1) / block_size.n - begin / block_size.n;
            auto byte = static_cast<size_t>(begin / block_size.n) * block_size.bytes;
            if constexpr (block_size.n == group_weights) {
                uint16_t halves[R][(most_together / group_weights + 1) * halves_of_block + 15];
                for (int64_t i = 0; i < n; ++i, byte += block_size.bytes)
#pragma GCC unroll 4
                    for (int r = 0; r < R; ++r) copy_halves(rows[r] + byte, halves[r] + i * halves_of_block);
                for (int r = 0; r < R; ++r)
                    for (int64_t i = 0; i < n * halves_of_block; i += 16)
                        read_sixteen(halves[r] + i, scales[r].factors + i);
            } else {
                constexpr int64_t of_block = block_size.n / (F::scales_sixteens ? 16 : 32);
                for (int64_t i = 0; i < n * of_block; i += of_block, byte += block_size.bytes)
                    for (int r = 0; r < R; ++r)
                        F::scales(rows[r] + byte, scales[r].factors + i, scales[r].offsets + (F::has_offset ? i : 0));
            }
        }
        static void read_sixteen(const uint16_t* halves, float* out) {
            Simd::from_sixteen_halves(halves, out);
            if constexpr (b != 1)
                for (int i = 0; i < 16; i += Simd::lanes)
                    Simd::store(out + i, Simd::mul(Simd::load(out + i), Simd::load(byte_factors + i)));
        }
        static void copy_halves(const uint8_t* from, uint16_t* to) {
            std::conditional_t<halves_of_block == 1, uint16_t, uint32_t> bits;
            std::memcpy(&bits, from, sizeof bits);
            asm("" : "+r"(bits));  // a vector copy would occupy the units that decode
            std::memcpy(to, &bits, sizeof bits);
        }
        /// Returns the factor of group `at` or of one of its halves. Group 0 begins the block that contains `begin`.
        [[nodiscard]] vec factor(int64_t at, bool last = false) const {
            const int64_t i = F::scales_sixteens ? 2 * at + last : at;
            return Simd::set1(factors[block_size.n == group_weights ? i * halves_of_block : i]);
        }
        [[nodiscard]] vec offset(int64_t at, bool last = false) const {
            const int64_t i = F::scales_sixteens ? 2 * at + last : at;
            return Simd::set1(block_size.n == group_weights ? factors[i * halves_of_block + 1] : offsets[i]);
        }
    };

    template <class F>
    struct Group {
        const uint8_t* block;
        int part;  ///< index of these 32 weights within their block
        const Scales<F>* scales;
        int64_t at;  ///< argument of Scales::factor()
    };

    /// Weights [begin, begin + count) of R rows and their scales. Call read() early: it makes small stores, and vector
    /// loads from the same place must wait for them.
    template <class F, int R>
    struct Stretch {
        static constexpr WeightBlock block_size = block_size_of_format(F::format);
        const uint8_t* rows[R];
        int64_t begin, count;
        Scales<F> scales[R];

        void read(const uint8_t* const (&of)[R], int64_t from, int64_t n) {
            for (int r = 0; r < R; ++r) rows[r] = of[r];
            begin = from;
            count = n;
            Scales<F>::read(rows, begin, count, scales);
        }

        /// Calls call(i, groups) for i = 0, 32, ... with R groups of 32 weights. Prefetches `ahead` bytes in advance.
        template <class Call>
        [[gnu::always_inline]] inline void over_groups(size_t ahead, const Call& call) const {
            walk([&](int64_t i, size_t byte, int part, int64_t group) {
                Group<F> groups[R];
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r) groups[r] = group_of(r, ahead, byte, part, group);
                call(i, groups);
            });
        }

        template <class Call>
        [[gnu::always_inline]] inline void over_groups_of(int row, size_t ahead, const Call& call) const {
            walk([&](int64_t i, size_t byte, int part, int64_t group) {
                call(i, group_of(row, ahead, byte, part, group));
            });
        }

     private:
        [[nodiscard]] [[gnu::always_inline]] inline Group<F> group_of(int row, size_t ahead, size_t byte, int part,
                                                                      int64_t group) const {
            __builtin_prefetch(rows[row] + byte + ahead + (block_size.n > group_weights ? part * 64 : 0));
            return {rows[row] + byte, part, &scales[row], group};
        }
        template <class Call>
        [[gnu::always_inline]] inline void walk(const Call& call) const {
            int64_t group = begin % block_size.n / group_weights;
            int part = static_cast<int>(group);
            auto byte = static_cast<size_t>(begin / block_size.n) * block_size.bytes;
            for (int64_t i = 0; i < count; i += group_weights, ++group) {
                call(i, byte, part, group);
                if (block_size.n == group_weights || ++part == block_size.n / group_weights) {
                    part = 0;
                    byte += block_size.bytes;
                }
            }
        }
    };

    /// Calls call(i, weights) for each vector i of weights in a group.
    template <class F, class Call>
    [[gnu::always_inline]] static inline void over_vectors(const Group<F>& group, const Call& call) {
        constexpr int n = group_weights / Simd::lanes;
        if constexpr (shares_bytes<F>) {
            vec integers[n];
            Simd::from_nibbles(F::nibbles_at(group.block), integers);
#pragma GCC unroll 8
            for (int i = 0; i < n; ++i) call(i, scaled(integers[i], group, i >= n / 2));
        } else {
            bytes q[2];
            F::read(group.block, group.part, q);
#pragma GCC unroll 8
            for (int i = 0; i < n; ++i) call(i, scaled(q, i * Simd::lanes, group));
        }
    }

    template <class F, int R, class Pairs>
    [[gnu::always_inline]] static inline void numbers_of(const Group<F> (&groups)[R], Pairs (&pairs)[R]) {
        if constexpr (F::n_numbers == 16) {
#pragma GCC unroll 4
            for (int r = 0; r < R; r += 2) {
                const int other = r + 1 < R ? r + 1 : r;
                const auto table = Simd::table_of(numbers<F::lowest>(groups[r]), numbers<F::lowest>(groups[other]));
                for (int i = r; i <= other; ++i)
                    pairs[i] = Simd::look_up(F::template indices<Simd>(groups[i].block, groups[i].part), table, i != r);
            }
        } else {
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) pairs[r] = numbers_of_one(groups[r]);
        }
    }

 private:
    /// 16 bytes, repeated byte_copies times for from_bytes().
    typedef uint8_t bytes __attribute__((vector_size(16 * Simd::byte_copies)));
    typedef uint16_t words __attribute__((vector_size(16 * Simd::byte_copies)));
    static_assert(sizeof(bytes) == 16 * Simd::byte_copies && sizeof(words) == sizeof(bytes));

    [[nodiscard]] static float half_at(const uint8_t* p) {
        uint16_t bits = 0;
        std::memcpy(&bits, p, sizeof bits);
        return Simd::from_half(bits);
    }
    [[nodiscard]] static float factor_at(const uint8_t* p) { return half_at(p) * Simd::byte_factor; }
    [[nodiscard]] [[gnu::always_inline]] static inline bytes load(const void* p) {
        if constexpr (Simd::byte_copies == 1) {
            bytes x;
            std::memcpy(&x, p, sizeof x);
            return x;
        } else {
            return reinterpret_cast<bytes>(Simd::load_bytes(p));
        }
    }
    [[nodiscard]] [[gnu::always_inline]] static inline bytes of_two(uint64_t a, uint64_t b) {
        if constexpr (Simd::byte_copies == 1) {
            typedef uint64_t longs __attribute__((vector_size(16)));
            const longs both = {a, b};
            return load(&both);
        } else {
            return reinterpret_cast<bytes>(Simd::bytes_of(a, b));
        }
    }
    [[nodiscard]] static uint32_t four_at(const uint8_t* p) {
        uint32_t x = 0;
        std::memcpy(&x, p, sizeof x);
        return x;
    }
    /// Shifts each byte right by `shift` and applies the mask, which must remove bits of the neighboring byte.
    [[nodiscard]] static bytes bits_of(bytes x, int shift, uint8_t mask) { return (bytes)((words)x >> shift) & mask; }
    [[nodiscard]] static bytes raised(bytes x, int shift) { return (bytes)((words)x << shift); }
    static void multiplied(bytes x, float by, float* out) {
#pragma GCC unroll 4
        for (int i = 0; i < 16; i += Simd::lanes)
            Simd::store(out + i, Simd::mul(Simd::from_bytes(x, i), Simd::set1(by * Simd::byte_factor)));
    }

    // `scales` writes the scales of the block at p; `read` returns the integers of 32 weights in two's complement.
    // Blocks of 32 begin with the factor as a half, followed by the offset if the format has one.

    [[gnu::always_inline]] static inline void nibbles(const uint8_t* p, bytes (&q)[2]) {
        const bytes x = load(p);
        q[0] = x & 15;
        q[1] = bits_of(x, 4, 15);
    }
    [[gnu::always_inline]] static inline void fives(const uint8_t* p, const uint8_t* high, bytes (&q)[2]) {
        alignas(16) static constexpr uint8_t bits_of_byte[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                                 1, 2, 4, 8, 16, 32, 64, 128};
        const bytes each = load(bits_of_byte);
        constexpr uint64_t everywhere = 0x0101010101010101;
        nibbles(p, q);
        const uint32_t all = four_at(high);
        for (int half = 0; half < 2; ++half) {
            const uint32_t bits = all >> (16 * half);
            const bytes spread = of_two((bits & 255) * everywhere, (bits >> 8 & 255) * everywhere);
            q[half] |= (bytes)((spread & each) == each) & 16;
        }
    }
    [[gnu::always_inline]] static inline void lower(uint8_t zero, bytes (&q)[2]) {
        q[0] -= zero;
        q[1] -= zero;
    }

    /// Smallest integer of a weight, and number of possible integers. Formats with too many for a table have 1 and 0.
    template <WeightFormat which, bool adds, bool by_sixteens, int lowest_number = 1, int numbers = 0>
    struct Format {
        static constexpr int lowest = lowest_number, n_numbers = numbers;
        static constexpr WeightFormat format = which;
        static constexpr bool has_offset = adds;
        static constexpr bool scales_sixteens = by_sixteens;
    };
    struct q4_0 : Format<WeightFormat::q4_0, false, false, -8, 16> {
        template <class S>
        [[nodiscard]] static auto indices(const uint8_t* p, int) {
            return S::halves_of(p + 2);
        }
        static void read(const uint8_t* p, int, bytes (&q)[2]) {
            nibbles(p + 2, q);
            lower(8, q);
        }
    };
    template <WeightFormat which, int n>
    using WithMinimum = Format<which, true, false, 0, n>;
    struct q4_1 : WithMinimum<WeightFormat::q4_1, 16> {
        template <class S>
        [[nodiscard]] static auto indices(const uint8_t* p, int) {
            return S::halves_of(p + 4);
        }
        [[nodiscard]] static const uint8_t* nibbles_at(const uint8_t* p) { return p + 4; }
        static void read(const uint8_t* p, int, bytes (&q)[2]) { nibbles(nibbles_at(p), q); }
    };
    struct q5_0 : Format<WeightFormat::q5_0, false, false, -16, 32> {
        template <class S>
        [[nodiscard]] static auto indices(const uint8_t* p, int) {
            return S::with_fifth(S::halves_of(p + 6), four_at(p + 2));
        }
        static void read(const uint8_t* p, int, bytes (&q)[2]) {
            fives(p + 6, p + 2, q);
            lower(16, q);
        }
    };
    struct q5_1 : WithMinimum<WeightFormat::q5_1, 32> {
        template <class S>
        [[nodiscard]] static auto indices(const uint8_t* p, int) {
            return S::with_fifth(S::halves_of(p + 8), four_at(p + 4));
        }
        static void read(const uint8_t* p, int, bytes (&q)[2]) { fives(p + 8, p + 4, q); }
    };
    struct q8_0 : Format<WeightFormat::q8_0, false, false> {
        static void read(const uint8_t* p, int, bytes (&q)[2]) {
            q[0] = load(p + 2);
            q[1] = load(p + 18);
        }
    };
    struct q2_k : Format<WeightFormat::q2_k, true, true> {
        static void scales(const uint8_t* p, float* factors, float* offsets) {
            multiplied(load(p) & 15, factor_at(p + 80), factors);
            multiplied(bits_of(load(p), 4, 15), -half_at(p + 82), offsets);
        }
        static void read(const uint8_t* p, int part, bytes (&q)[2]) {
            for (int half = 0; half < 2; ++half)
                q[half] = bits_of(load(p + 16 + part / 4 * 32 + 16 * half), part % 4 * 2, 3);
        }
    };
    struct q3_k : Format<WeightFormat::q3_k, false, true> {
        /// The lower four bits of the 16 scales (6 bits each) are in 8 bytes, the upper two in 4 bytes.
        static void scales(const uint8_t* p, float* factors, float*) {
            typedef uint32_t fours __attribute__((vector_size(16)));
            const uint32_t a = four_at(p + 96), b = four_at(p + 100), high = four_at(p + 104);
            const fours low = {a & 0x0f0f0f0f, b & 0x0f0f0f0f, a >> 4 & 0x0f0f0f0f, b >> 4 & 0x0f0f0f0f};
            const fours upper = {high & 0x03030303, high >> 2 & 0x03030303, high >> 4 & 0x03030303,
                                 high >> 6 & 0x03030303};
            const fours scales = low | upper << 4;
            multiplied(load(&scales) - 32, factor_at(p + 108), factors);
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
        /// 8 scales and 8 minima of 6 bits in 12 bytes. Bytes of scales and minima 0 to 3 also contain bits of 4 to 7.
        static void scales(const uint8_t* p, float* factors, float* offsets) {
            typedef uint32_t fours __attribute__((vector_size(16)));
            const uint32_t a = four_at(p + 4), b = four_at(p + 8), c = four_at(p + 12);
            const fours numbers = {a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4, b & 0x3f3f3f3f,
                                   (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4};
            alignas(64) float minima[16];
            multiplied(load(&numbers), factor_at(p), factors);  // the next block overwrites the minima
            multiplied(load(&numbers), -half_at(p + 2), minima);
            std::memcpy(offsets, minima + 8, 8 * sizeof(float));
        }
    };
    struct q4_k : WithSixBits<WeightFormat::q4_k, 16> {
        template <class S>
        [[nodiscard]] static auto indices(const uint8_t* p, int part) {
            return S::bytes_of(p + 16 + part / 2 * 32, part % 2 * 4);
        }
        static void read(const uint8_t* p, int part, bytes (&q)[2]) {
            for (int half = 0; half < 2; ++half)
                q[half] = bits_of(load(p + 16 + part / 2 * 32 + 16 * half), part % 2 * 4, 15);
        }
    };
    struct q5_k : WithSixBits<WeightFormat::q5_k, 32> {
        template <class S>
        [[nodiscard]] static auto indices(const uint8_t* p, int part) {
            return S::with_fifth(S::bytes_of(p + 48 + part / 2 * 32, part % 2 * 4), S::bit_of(p + 16, part));
        }
        static void read(const uint8_t* p, int part, bytes (&q)[2]) {
            for (int half = 0; half < 2; ++half)
                q[half] = bits_of(load(p + 48 + part / 2 * 32 + 16 * half), part % 2 * 4, 15) |
                          raised(bits_of(load(p + 16 + 16 * half), part, 1), 4);
        }
    };
    struct q6_k : Format<WeightFormat::q6_k, false, true> {
        static void scales(const uint8_t* p, float* factors, float*) {
            multiplied(load(p + 192), factor_at(p + 208), factors);
        }
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

    static void store(float* to, vec x) { Simd::store(to, x); }
    static void store(bf16* to, vec x) { Simd::store_bf16(to, x); }
    /// Returns the group's weights for a vector of the integers `first`, `first` + 1, ...
    template <int first, class F>
    [[nodiscard]] [[gnu::always_inline]] static inline vec numbers(const Group<F>& group) {
        const vec x = Simd::template times_counted<first>(group.scales->factor(group.at));
        return F::has_offset ? Simd::add(Simd::rounded(x), group.scales->offset(group.at)) : x;
    }

    /// Returns a vector of weights. The product is exact (17-bit factor, 5-bit integer), so fma rounds like separate
    /// operations.
    template <class F>
    [[nodiscard]] [[gnu::always_inline]] static inline vec scaled(vec integers, const Group<F>& group, bool last) {
        const vec factor = group.scales->factor(group.at, last);
        if constexpr (F::has_offset)
            return Simd::fma(integers, factor, group.scales->offset(group.at, last));
        else
            return Simd::mul(integers, factor);
    }
    template <class F>
    [[nodiscard]] [[gnu::always_inline]] static inline vec scaled(const bytes (&q)[2], int first,
                                                                  const Group<F>& group) {
        return scaled(Simd::from_bytes(q[first / 16], first % 16), group, first >= 16);
    }

    template <class F>
    [[nodiscard]] [[gnu::always_inline]] static inline auto numbers_of_one(const Group<F>& group) {
        if constexpr (F::n_numbers == 32) {
            const auto table = Simd::table_of(numbers<F::lowest>(group), numbers<F::lowest + 16>(group));
            return Simd::look_up(F::template indices<Simd>(group.block, group.part), table);
        } else {
            bytes q[2];
            F::read(group.block, group.part, q);
            return Simd::pairs_of(scaled(q, 0, group), scaled(q, 16, group));
        }
    }

    template <class F, class T>
    [[gnu::always_inline]] static inline void decode_group(const Group<F>& group, T* out) {
        if constexpr (sizeof(T) == sizeof(bf16) && has_pairs) {
            const Group<F> one[1] = {group};
            typename Simd::pairs pairs[1];
            numbers_of(one, pairs);
            Simd::store_pairs(out, pairs[0]);
        } else {
            over_vectors(group, [&](int i, vec x) { store(out + i * Simd::lanes, x); });
        }
    }

    template <class F, class T>
    static void groups(const uint8_t* row, int64_t begin, int64_t count, T* out) {
        for (int64_t done = 0; done < count; done += most_together) {
            const uint8_t* const rows[1] = {row};
            Stretch<F, 1> stretch;  // NOLINT(*-member-init): filled below
            stretch.read(rows, begin + done, count - done < most_together ? count - done : most_together);
            stretch.over_groups_of(0, prefetch_bytes,
                                   [&](int64_t i, const Group<F>& group) { decode_group(group, out + done + i); });
        }
    }

    template <class F, class T>
    static void four_rows(const uint8_t* const (&rows)[4], int64_t begin, int64_t count, size_t ahead, T* out,
                          int64_t stride) {
        Stretch<F, 4> stretch;  // NOLINT(*-member-init): filled below
        stretch.read(rows, begin, count);
        if constexpr (sizeof(T) == sizeof(bf16) && has_pairs) {
            stretch.over_groups(ahead, [&](int64_t i, const auto& groups) {
                typename Simd::pairs pairs[4];
                numbers_of(groups, pairs);
#pragma GCC unroll 4
                for (int r = 0; r < 4; ++r) Simd::store_pairs(out + r * stride + i, pairs[r]);
            });
        } else {
            for (int r = 0; r < 4; ++r)
                stretch.over_groups_of(
                    r, ahead, [&](int64_t i, const Group<F>& group) { decode_group(group, out + r * stride + i); });
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
