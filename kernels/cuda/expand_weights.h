#pragma once

#include "kernels/cuda/tile.h"
#include "kernels/weight_format.h"

/// Decodes eight adjacent stored weights at a time. Operations are rounded separately, as in kernels::expand_weights().
namespace kvscope::kernels::cuda {

inline constexpr int weights_at_once = 8;
using Weights = Numbers<float, weights_at_once>;

/// Reads two bytes at a time, because blocks are aligned only to 2 bytes.
KVSCOPE_HOST_DEVICE uint32_t two_bytes_at(const uint8_t* p) {
#ifdef __CUDA_ARCH__
    return *reinterpret_cast<const uint16_t*>(p);
#else
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return x;
#endif
}

KVSCOPE_HOST_DEVICE float half_number(uint32_t bits) { return to_float(half{static_cast<uint16_t>(bits)}); }

struct Eight {
    uint32_t low, high;
    KVSCOPE_HOST_DEVICE uint32_t word(int i) const { return i < 4 ? low : high; }
};

KVSCOPE_HOST_DEVICE Eight eight_bytes_at(const uint8_t* p) {
    return {two_bytes_at(p) | two_bytes_at(p + 2) << 16, two_bytes_at(p + 4) | two_bytes_at(p + 6) << 16};
}

/// Returns byte i of a word minus `zero`. Uses the mantissa of 2^23, which is exact and faster than a conversion.
KVSCOPE_HOST_DEVICE float byte_as_float(uint32_t word, int i, int zero) {
    constexpr float leading_bit = 8388608.0f;
#ifdef __CUDA_ARCH__
    const uint32_t bits = __byte_perm(word, 0x4b000000u, 0x7440u + static_cast<uint32_t>(i));
#else
    const uint32_t bits = 0x4b000000u | (word >> 8 * i & 255);
#endif
    return add_rounded(bits_to_float(bits), -(leading_bit + static_cast<float>(zero)));
}

KVSCOPE_HOST_DEVICE uint32_t spread(uint32_t bits) { return (bits & 15) * 0x00204081u & 0x01010101u; }

/// Scales a result q of byte_as_float() to factor q + offset.
struct Scaling {
    float factor, offset;
};

template <bool adds>
KVSCOPE_HOST_DEVICE float scale_and_offset(float q, const Scaling& scaling) {
    const float x = multiply_rounded(q, scaling.factor);
    return adds ? add_rounded(x, scaling.offset) : x;
}

template <bool adds>
KVSCOPE_HOST_DEVICE Weights scale_and_offset(const Eight& q, int zero, const Scaling& scaling) {
    Weights x;
    KVSCOPE_UNROLL
    for (int i = 0; i < weights_at_once; ++i)
        x[i] = scale_and_offset<adds>(byte_as_float(q.word(i), i % 4, zero), scaling);
    return x;
}

[[nodiscard]] constexpr bool is_unquantized(WeightFormat format) {
    return format == WeightFormat::f32 || format == WeightFormat::bf16 || format == WeightFormat::f16;
}

/// Whether a format with blocks of 32 weights has an offset (small_block_has_offset) or a separate fifth bit
/// (has_fifth).
[[nodiscard]] constexpr bool small_block_has_offset(WeightFormat format) {
    return format == WeightFormat::q4_1 || format == WeightFormat::q5_1;
}
[[nodiscard]] constexpr bool has_fifth(WeightFormat format) {
    return format == WeightFormat::q5_0 || format == WeightFormat::q5_1;
}

[[nodiscard]] constexpr int words_of_eight_weights(WeightFormat format) {
    if (is_unquantized(format)) return format == WeightFormat::f32 ? 8 : 4;
    return block_size_of_format(format).n == 32 ? (has_fifth(format) ? 4 : 3) : 6;
}

/// Eight weights as loaded, before any computation: plain numbers, or factors, offset and packed bits.
template <WeightFormat format>
using Stored = Numbers<uint32_t, words_of_eight_weights(format)>;

/// Loads weights [at, at + 8) of the block of 32 at p.
template <WeightFormat format>
KVSCOPE_HOST_DEVICE Stored<format> load_from_small_block(const uint8_t* p, int at) {
    constexpr int fifths = small_block_has_offset(format) ? 4 : 2, bytes = fifths + (has_fifth(format) ? 4 : 0);
    const Eight q = eight_bytes_at(p + bytes + (format == WeightFormat::q8_0 ? at : at % 16));
    Stored<format> x;
    x[0] = two_bytes_at(p) | (small_block_has_offset(format) ? two_bytes_at(p + 2) << 16 : 0u);
    x[1] = q.low;
    x[2] = q.high;
    if constexpr (has_fifth(format)) x[3] = two_bytes_at(p + fifths) | two_bytes_at(p + fifths + 2) << 16;
    return x;
}

template <WeightFormat format>
KVSCOPE_HOST_DEVICE Weights expand_eight_of_small_block(const Stored<format>& stored, int at) {
    using enum WeightFormat;
    constexpr bool adds = small_block_has_offset(format);
    const Scaling scaling{half_number(stored[0] & 0xffffu), adds ? half_number(stored[0] >> 16) : 0.0f};
    Eight q{stored[1], stored[2]};
    if constexpr (format == q8_0) {
        constexpr uint32_t sign_bits = 0x80808080u;  // maps -128 ... 127 to 0 ... 255
        return scale_and_offset<false>(Eight{q.low ^ sign_bits, q.high ^ sign_bits}, 128, scaling);
    } else {
        constexpr uint32_t lower_halves = 0x0f0f0f0fu;
        constexpr int zero = format == q4_0 ? 8 : format == q5_0 ? 16 : 0;
        const int shift = at < 16 ? 0 : 4;
        q = {q.low >> shift & lower_halves, q.high >> shift & lower_halves};
        if constexpr (has_fifth(format)) {
            const uint32_t fifth = stored[3] >> at;
            q = {q.low | spread(fifth) << 4, q.high | spread(fifth >> 4) << 4};
        }
        return scale_and_offset<adds>(q, zero, scaling);
    }
}

/// Scale `i` of q3_k has six bits: the lower four in 8 bytes, the upper two in 4 bytes.
KVSCOPE_HOST_DEVICE uint32_t load_packed_q3_scale(const uint8_t* p, int i) {
    return p[96 + i % 8] | p[104 + i % 4] << 8;
}
KVSCOPE_HOST_DEVICE int q3_scale(uint32_t bytes, int i) {
    const uint32_t low = (bytes & 255) >> i / 8 * 4 & 15, high = bytes >> 8 >> i / 4 * 2 & 3;
    return static_cast<int>(low | high << 4) - 32;
}

/// Returns the bytes of scale and minimum `i` of q4_k and q5_k. The last four pairs share bytes with the first four.
KVSCOPE_HOST_DEVICE uint32_t load_packed_six_bit_scaling(const uint8_t* p, int i) {
    return p[4 + i % 4] | p[8 + i % 4] << 8 | p[12 + i % 4] << 16;
}
KVSCOPE_HOST_DEVICE Scaling six_bit_scaling(uint32_t bytes, uint32_t halves, int i) {
    const uint32_t a = bytes & 255, b = bytes >> 8 & 255, c = bytes >> 16;
    const uint32_t scale = i < 4 ? a & 63 : (c & 15) | a >> 6 << 4;
    const uint32_t minimum = i < 4 ? b & 63 : c >> 4 | b >> 6 << 4;
    return {multiply_rounded(static_cast<float>(scale), half_number(halves & 0xffffu)),
            multiply_rounded(static_cast<float>(minimum), -half_number(halves >> 16))};
}

/// Loads weights [at, at + 8) of the block of 256 at p.
template <WeightFormat format>
KVSCOPE_HOST_DEVICE Stored<format> load_from_large_block(const uint8_t* p, int at) {
    using enum WeightFormat;
    const int part = at / 32, within = at % 32, sixteenth = at / 16;
    uint32_t halves = 0, scales = 0;
    Eight low{0, 0}, high{0, 0};
    if constexpr (format == q2_k) {
        halves = two_bytes_at(p + 80) | two_bytes_at(p + 82) << 16;
        scales = p[sixteenth];
        low = eight_bytes_at(p + 16 + part / 4 * 32 + within);
    } else if constexpr (format == q3_k) {
        halves = two_bytes_at(p + 108);
        scales = load_packed_q3_scale(p, sixteenth);
        low = eight_bytes_at(p + 32 + part / 4 * 32 + within);
        high = eight_bytes_at(p + within);
    } else if constexpr (format == q4_k || format == q5_k) {
        halves = two_bytes_at(p) | two_bytes_at(p + 2) << 16;
        scales = load_packed_six_bit_scaling(p, part);
        low = eight_bytes_at(p + (format == q4_k ? 16 : 48) + part / 2 * 32 + within);
        if constexpr (format == q5_k) high = eight_bytes_at(p + 16 + within);
    } else {
        static_assert(format == q6_k);
        halves = two_bytes_at(p + 208);
        scales = p[192 + sixteenth];
        low = eight_bytes_at(p + part / 4 * 64 + part % 2 * 32 + within);
        high = eight_bytes_at(p + 128 + part / 4 * 32 + within);
    }
    return {{halves, scales, low.low, low.high, high.low, high.high}};
}

template <WeightFormat format>
KVSCOPE_HOST_DEVICE Weights expand_eight_of_large_block(const Stored<format>& stored, int at) {
    using enum WeightFormat;
    constexpr bool adds = format == q2_k || format == q4_k || format == q5_k;
    const int part = at / 32, sixteenth = at / 16;
    const uint32_t halves = stored[0], scales = stored[1];
    const Eight low{stored[2], stored[3]}, high{stored[4], stored[5]};
    const float factor = half_number(halves & 0xffffu);
    Scaling scaling{0, 0};
    int shift = 0, high_shift = 0, zero = 0;
    uint32_t mask = 15, high_mask = 0;  // masks of one byte
    if constexpr (format == q2_k) {
        scaling = {multiply_rounded(static_cast<float>(scales & 15), factor),
                   multiply_rounded(static_cast<float>(scales >> 4), -half_number(halves >> 16))};
        shift = part % 4 * 2, mask = 3;
    } else if constexpr (format == q3_k) {
        scaling.factor = multiply_rounded(static_cast<float>(q3_scale(scales, sixteenth)), factor);
        shift = part % 4 * 2, mask = 3, high_shift = part, high_mask = 1, zero = 4;
    } else if constexpr (format == q4_k || format == q5_k) {
        scaling = six_bit_scaling(scales, halves, part);
        shift = part % 2 * 4;
        if constexpr (format == q5_k) high_shift = part, high_mask = 1;
    } else {
        scaling.factor = multiply_rounded(static_cast<float>(static_cast<int8_t>(scales)), factor);
        shift = part % 4 / 2 * 4, high_shift = part % 4 * 2, high_mask = 3, zero = 32;
    }
    constexpr int above = format == q3_k ? 2 : 4;
    constexpr uint32_t each_byte = 0x01010101u;
    const auto numbers = [&](uint32_t lower, uint32_t upper) {
        return (lower >> shift & mask * each_byte) | (upper >> high_shift & high_mask * each_byte) << above;
    };
    return scale_and_offset<adds>(Eight{numbers(low.low, high.low), numbers(low.high, high.high)}, zero, scaling);
}

/// Returns the lower word of two words shifted right by `bits`, at most 31.
KVSCOPE_HOST_DEVICE uint32_t funnel_shift_right(uint32_t low, uint32_t high, uint32_t bits) {
#ifdef __CUDA_ARCH__
    return __funnelshift_r(low, high, bits);
#else
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> bits);
#endif
}

KVSCOPE_HOST_DEVICE uint32_t word_at(const uint8_t* p) {
#ifdef __CUDA_ARCH__
    return *reinterpret_cast<const uint32_t*>(p);
#else
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
#endif
}

/// Loads n words from p, aligned to 2 or 4 bytes. May read 2 bytes before p. Branches would split warps.
template <int n>
KVSCOPE_HOST_DEVICE Numbers<uint32_t, n> words_at(const uint8_t* p) {
    const auto beside = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p) % 4);
    const uint8_t* from = p - beside;
    Numbers<uint32_t, n> words;
    KVSCOPE_UNROLL
    for (int i = 0; i < n; ++i) words[i] = word_at(from + 4 * i);
    const uint32_t last = two_bytes_at(p + 4 * n - 2);  // if aligned, a part of the last word again
    KVSCOPE_UNROLL
    for (int i = 0; i < n; ++i) words[i] = funnel_shift_right(words[i], i + 1 < n ? words[i + 1] : last, 8 * beside);
    return words;
}

/// Whether a thread can hold 32 loaded weights. False for blocks of 256 whose bits are in several places.
[[nodiscard]] constexpr bool can_load_block_parts(WeightFormat format) {
    return !is_unquantized(format) &&
           (block_size_of_format(format).n == 32 || format == WeightFormat::q2_k || format == WeightFormat::q4_k);
}

/// 32 weights loaded word by word: a block of 32, or an eighth of a block of 256.
template <WeightFormat format>
struct StoredPart {
    static constexpr bool is_small_block = block_size_of_format(format).n == 32;
    Stored<format> head;  ///< factors and offset; weights() adds the bits
    uint32_t scales[2];   ///< scales of each half of the part, for blocks of 256
    Numbers<uint32_t, format == WeightFormat::q8_0 || !is_small_block ? 8 : 4> bits;

    /// Returns weights [8 i, 8 i + 8) of part `part` of its block.
    KVSCOPE_HOST_DEVICE Weights weights(int part, int i) const {
        constexpr int first = is_small_block ? 1 : 2;
        const int at = format == WeightFormat::q8_0 || !is_small_block ? 2 * i : i % 2 * 2;
        Stored<format> eight = head;
        eight[first] = bits[at];
        eight[first + 1] = bits[at + 1];
        if constexpr (is_small_block) {
            return expand_eight_of_small_block<format>(eight, 8 * i);
        } else {
            eight[1] = scales[i / 2];
            return expand_eight_of_large_block<format>(eight, 32 * part + 8 * i);
        }
    }
};

/// Loads part `part` of the block at p. A block of 32 has only part 0.
template <WeightFormat format>
KVSCOPE_HOST_DEVICE StoredPart<format> load_block_part(const uint8_t* p, int part) {
    StoredPart<format> x;
    if constexpr (StoredPart<format>::is_small_block) {
        constexpr int head = small_block_has_offset(format) ? 4 : 2;
        x.head[0] = two_bytes_at(p) | (small_block_has_offset(format) ? two_bytes_at(p + 2) << 16 : 0u);
        x.head[1] = x.head[2] = x.scales[0] = x.scales[1] = 0;
        if constexpr (has_fifth(format)) x.head[3] = words_at<1>(p + head)[0];
        x.bits = words_at < format == WeightFormat::q8_0 ? 8 : 4 > (p + head + (has_fifth(format) ? 4 : 0));
    } else {
        x.head = load_from_large_block<format>(p, 32 * part);
        x.scales[0] = x.head[1];
        x.scales[1] = format == WeightFormat::q2_k ? load_from_large_block<format>(p, 32 * part + 16)[1] : x.head[1];
        x.bits = words_at<8>(p + 16 + (format == WeightFormat::q2_k ? part / 4 : part / 2) * 32);
    }
    return x;
}

/// Loads weights [at, at + 8) of a row; `at` is a multiple of 8. Rows of plain numbers are aligned to 16 bytes.
template <WeightFormat format>
KVSCOPE_DEVICE Stored<format> load_eight_weights(const uint8_t* row, int64_t at) {
    if constexpr (format == WeightFormat::f32) {
        const auto* numbers = reinterpret_cast<const float*>(row) + at;
        const Four a = load_once(numbers), b = load_once(numbers + 4);
        return {{a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]}};
    } else if constexpr (is_unquantized(format)) {
        return load_once(reinterpret_cast<const kernels::bf16*>(row) + at);
    } else {
        constexpr WeightBlock block = block_size_of_format(format);
        const uint8_t* p = row + static_cast<size_t>(at / block.n) * block.bytes;
        if constexpr (block.n == 32)
            return load_from_small_block<format>(p, static_cast<int>(at % 32));
        else
            return load_from_large_block<format>(p, static_cast<int>(at % 256));
    }
}

template <WeightFormat format>
KVSCOPE_DEVICE Weights expand_eight_weights(const Stored<format>& stored, int64_t at) {
    Weights x;
    if constexpr (format == WeightFormat::f32) {
        KVSCOPE_UNROLL
        for (int i = 0; i < 8; ++i) x[i] = bits_to_float(stored[i]);
    } else if constexpr (format == WeightFormat::bf16) {
        const Loaded<kernels::bf16> numbers{stored};
        KVSCOPE_UNROLL
        for (int i = 0; i < 8; ++i) x[i] = numbers[i];
    } else if constexpr (format == WeightFormat::f16) {
        KVSCOPE_UNROLL
        for (int i = 0; i < 8; ++i) x[i] = half_number(stored[i / 2] >> i % 2 * 16 & 0xffffu);
    } else if constexpr (block_size_of_format(format).n == 32) {
        x = expand_eight_of_small_block<format>(stored, static_cast<int>(at % 32));
    } else {
        x = expand_eight_of_large_block<format>(stored, static_cast<int>(at % 256));
    }
    return x;
}

template <WeightFormat format>
KVSCOPE_DEVICE Weights weights_at(const uint8_t* row, int64_t at) {
    return expand_eight_weights<format>(load_eight_weights<format>(row, at), at);
}

template <class Body>
auto with_format(WeightFormat format, const Body& body) {
    using enum WeightFormat;
    switch (format) {
        case f32:
            return body.template operator()<f32>();
        case bf16:
            return body.template operator()<bf16>();
        case f16:
            return body.template operator()<f16>();
        case q4_0:
            return body.template operator()<q4_0>();
        case q4_1:
            return body.template operator()<q4_1>();
        case q5_0:
            return body.template operator()<q5_0>();
        case q5_1:
            return body.template operator()<q5_1>();
        case q8_0:
            return body.template operator()<q8_0>();
        case q2_k:
            return body.template operator()<q2_k>();
        case q3_k:
            return body.template operator()<q3_k>();
        case q4_k:
            return body.template operator()<q4_k>();
        case q5_k:
            return body.template operator()<q5_k>();
        default:
            return body.template operator()<q6_k>();
    }
}

}  // namespace kvscope::kernels::cuda
