#pragma once

#include "kernels/cuda/tile.h"
#include "kernels/weight_format.h"

/// Stored weights as numbers, eight neighbours at a time: whatever the format these have a factor and, in some formats,
/// a number to add. Each operation is rounded on its own, so that the numbers are those of kernels::expand_weights.
namespace kvscope::kernels::cuda {

inline constexpr int kWeightsAtOnce = 8;
using Weights = Numbers<float, kWeightsAtOnce>;

/// Blocks begin at even addresses and no better ones.
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
KVSCOPE_HOST_DEVICE float half_at(const uint8_t* p) { return half_number(two_bytes_at(p)); }

/// Eight bytes, four in each word.
struct Eight {
    uint32_t low, high;
    KVSCOPE_HOST_DEVICE uint32_t operator[](int i) const { return (i < 4 ? low : high) >> i % 4 * 8 & 255; }
};

KVSCOPE_HOST_DEVICE Eight eight_at(const uint8_t* p) {
    return {two_bytes_at(p) | two_bytes_at(p + 2) << 16, two_bytes_at(p + 4) | two_bytes_at(p + 6) << 16};
}

/// factor q + offset, q being (byte >> shift & mask | fifth bits) - zero.
struct Scaling {
    float factor, offset;
};

template <bool adds>
KVSCOPE_HOST_DEVICE float scaled(int q, const Scaling& scaling) {
    const float x = product_of(static_cast<float>(q), scaling.factor);
    return adds ? sum_of(x, scaling.offset) : x;
}

/// Of a block of 32 at p the weights [at, at + 8).
template <WeightFormat format>
KVSCOPE_HOST_DEVICE Weights small_block(const uint8_t* p, int at) {
    using enum WeightFormat;
    constexpr bool adds = format == q4_1 || format == q5_1, has_fifth = format == q5_0 || format == q5_1;
    constexpr int fifths = adds ? 4 : 2, bytes = fifths + (has_fifth ? 4 : 0);
    const Scaling scaling{half_at(p), adds ? half_at(p + 2) : 0.0f};
    Weights x;
    if constexpr (format == q8_0) {
        const Eight q = eight_at(p + 2 + at);
        KVSCOPE_UNROLL
        for (int i = 0; i < 8; ++i) x[i] = scaled<false>(static_cast<int8_t>(q[i]), scaling);
    } else {
        const Eight q = eight_at(p + bytes + at % 16);
        const uint32_t fifth = has_fifth ? (two_bytes_at(p + fifths) | two_bytes_at(p + fifths + 2) << 16) >> at : 0u;
        constexpr int zero = format == q4_0 ? 8 : format == q5_0 ? 16 : 0;
        KVSCOPE_UNROLL
        for (int i = 0; i < 8; ++i) {
            const uint32_t number = (at < 16 ? q[i] & 15 : q[i] >> 4) | (fifth >> i & 1) << 4;
            x[i] = scaled<adds>(static_cast<int>(number) - zero, scaling);
        }
    }
    return x;
}

/// Scale number `i` of six bits, and the minimum, of q4_k and q5_k: the upper bits of the first four of each hold those
/// of the others.
KVSCOPE_HOST_DEVICE Scaling six_bit_scaling(const uint8_t* p, int i) {
    const int j = i % 4;
    const uint32_t a = p[4 + j], b = p[8 + j], c = p[12 + j];
    const uint32_t scale = i < 4 ? a & 63 : (c & 15) | a >> 6 << 4;
    const uint32_t minimum = i < 4 ? b & 63 : c >> 4 | b >> 6 << 4;
    return {product_of(static_cast<float>(scale), half_at(p)),
            product_of(static_cast<float>(minimum), -half_at(p + 2))};
}

/// Scale number `i` of six bits of q3_k: the lower four are in 8 bytes, the upper two in 4.
KVSCOPE_HOST_DEVICE int q3_scale(const uint8_t* p, int i) {
    const uint32_t low = p[96 + i % 8] >> i / 8 * 4 & 15, high = p[104 + i % 4] >> i / 4 * 2 & 3;
    return static_cast<int>(low | high << 4) - 32;
}

/// Of a block of 256 at p the weights [at, at + 8).
template <WeightFormat format>
KVSCOPE_HOST_DEVICE Weights large_block(const uint8_t* p, int at) {
    using enum WeightFormat;
    constexpr bool adds = format == q2_k || format == q4_k || format == q5_k;
    const int part = at / 32, within = at % 32, sixteenth = at / 16;
    Scaling scaling{0, 0};
    Eight low{0, 0}, high{0, 0};
    int shift = 0, high_shift = 0, zero = 0;
    uint32_t mask = 15, high_mask = 0;
    if constexpr (format == q2_k) {
        scaling = {product_of(static_cast<float>(p[sixteenth] & 15), half_at(p + 80)),
                   product_of(static_cast<float>(p[sixteenth] >> 4), -half_at(p + 82))};
        low = eight_at(p + 16 + part / 4 * 32 + within);
        shift = part % 4 * 2, mask = 3;
    } else if constexpr (format == q3_k) {
        scaling.factor = product_of(static_cast<float>(q3_scale(p, sixteenth)), half_at(p + 108));
        low = eight_at(p + 32 + part / 4 * 32 + within);
        high = eight_at(p + within);
        shift = part % 4 * 2, mask = 3, high_shift = part, high_mask = 1, zero = 4;
    } else if constexpr (format == q4_k) {
        scaling = six_bit_scaling(p, part);
        low = eight_at(p + 16 + part / 2 * 32 + within);
        shift = part % 2 * 4;
    } else if constexpr (format == q5_k) {
        scaling = six_bit_scaling(p, part);
        low = eight_at(p + 48 + part / 2 * 32 + within);
        high = eight_at(p + 16 + within);
        shift = part % 2 * 4, high_shift = part, high_mask = 1;
    } else {
        static_assert(format == q6_k);
        scaling.factor = product_of(static_cast<float>(static_cast<int8_t>(p[192 + sixteenth])), half_at(p + 208));
        low = eight_at(p + part / 4 * 64 + part % 2 * 32 + within);
        high = eight_at(p + 128 + part / 4 * 32 + within);
        shift = part % 4 / 2 * 4, high_shift = part % 4 * 2, high_mask = 3, zero = 32;
    }
    constexpr int above = format == q3_k ? 2 : 4;
    Weights x;
    KVSCOPE_UNROLL
    for (int i = 0; i < 8; ++i) {
        const uint32_t number = (low[i] >> shift & mask) | (high[i] >> high_shift & high_mask) << above;
        x[i] = scaled<adds>(static_cast<int>(number) - zero, scaling);
    }
    return x;
}

/// Weights [at, at + 8) of a row, `at` a multiple of 8; a row of numbers is aligned to 16 bytes.
template <WeightFormat format>
KVSCOPE_DEVICE Weights weights_at(const uint8_t* row, int64_t at) {
    Weights x;
    if constexpr (format == WeightFormat::f32) {
        const Loaded<float> a = load_aligned(reinterpret_cast<const float*>(row) + at);
        const Loaded<float> b = load_aligned(reinterpret_cast<const float*>(row) + at + 4);
        KVSCOPE_UNROLL
        for (int i = 0; i < 8; ++i) x[i] = i < 4 ? a[i] : b[i - 4];
    } else if constexpr (format == WeightFormat::bf16) {
        const Loaded<kernels::bf16> a = load_aligned(reinterpret_cast<const kernels::bf16*>(row) + at);
        KVSCOPE_UNROLL
        for (int i = 0; i < 8; ++i) x[i] = a[i];
    } else if constexpr (format == WeightFormat::f16) {
        const Loaded<kernels::bf16> a = load_aligned(reinterpret_cast<const kernels::bf16*>(row) + at);
        KVSCOPE_UNROLL
        for (int i = 0; i < 8; ++i) x[i] = half_number(a.words[i / 2] >> i % 2 * 16 & 0xffffu);
    } else {
        constexpr WeightBlock block = block_of(format);
        const uint8_t* p = row + static_cast<size_t>(at / block.n) * block.bytes;
        if constexpr (block.n == 32)
            x = small_block<format>(p, static_cast<int>(at % 32));
        else
            x = large_block<format>(p, static_cast<int>(at % 256));
    }
    return x;
}

/// Calls `body` with the format as a constant.
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
