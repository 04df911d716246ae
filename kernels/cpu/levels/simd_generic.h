#pragma once

#include "kernels/bf16.h"

namespace kvscope::kernels {

/// Vector operations of the CPU kernels, here with GCC's portable vectors of 4 lanes. Pointers may be unaligned.
struct SimdGeneric {
    typedef float vec __attribute__((vector_size(16)));
    typedef int ivec __attribute__((vector_size(16)));
    typedef float unaligned __attribute__((vector_size(16), aligned(4), may_alias));
    static constexpr int lanes = 4;
    static constexpr int tile_rows = 4;   ///< rows of a register tile, three vectors each
    static constexpr int panel_rows = 3;  ///< most rows of x in a tile of LinearPanel
    /// Largest numbers of rows for which plain weights (direct) and blocks of weights (stored) are not transposed.
    static constexpr int direct_bf16_up_to = 8, direct_f32_up_to = 8;
    static constexpr int stored_bf16_up_to = 26, stored_f32_up_to = 26;
    static constexpr int direct_rows = 3;        ///< most rows of x in a tile of LinearDirect
    static constexpr int direct_outputs = 6;     ///< most rows of the weight in that tile
    static constexpr int direct_registers = 16;  ///< registers for sums, weights and one row of x in that tile

    /// Returns the lane whose elements LinearPanel sums in a pass. fold() and join_folded() add in the same order.
    [[nodiscard]] static int lane_of_pass(int pass) { return pass; }

    [[nodiscard]] static vec zero() { return vec{}; }
    [[nodiscard]] static vec set1(float x) { return vec{x, x, x, x}; }
    [[nodiscard]] static vec load(const float* p) { return *reinterpret_cast<const unaligned*>(p); }
    static void store(float* p, vec x) { *reinterpret_cast<unaligned*>(p) = x; }
    [[nodiscard]] static vec load_bf16(const bf16* p) {
        return vec{to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])};
    }
    static void load_bf16_halves(const bf16* p, vec& even, vec& odd) {
        even = vec{to_float(p[0]), to_float(p[2]), to_float(p[4]), to_float(p[6])};
        odd = vec{to_float(p[1]), to_float(p[3]), to_float(p[5]), to_float(p[7])};
    }
    static void store_bf16(bf16* p, vec x) {
        for (int i = 0; i < lanes; ++i) p[i] = bf16_from_float(x[i]);
    }
    /// Returns a vector of the signed bytes from `first` on, divided by byte_factor. x contains byte_copies copies of
    /// 16 bytes.
    template <class Bytes>
    [[nodiscard]] static vec from_bytes(Bytes x, int first) {
        vec values;
        for (int i = 0; i < lanes; ++i) values[i] = static_cast<float>(static_cast<int8_t>(x[first + i]));
        return values;
    }
    static constexpr int byte_copies = 1;
    static constexpr float byte_factor = 1;
    [[nodiscard]] static float from_half(uint16_t bits) { return to_float(half{bits}); }
    static void from_sixteen_halves(const uint16_t* p, float* out) {
        for (int i = 0; i < 16; ++i) out[i] = from_half(p[i]);
    }
    /// Returns x. Prevents the compiler from fusing a product with a following addition.
    [[nodiscard]] static vec rounded(vec x) {
        asm volatile("" : "+m"(x));
        return x;
    }
    [[nodiscard]] static vec add(vec a, vec b) { return a + b; }
    [[nodiscard]] static vec sub(vec a, vec b) { return a - b; }
    [[nodiscard]] static vec mul(vec a, vec b) { return a * b; }
    [[nodiscard]] static vec div(vec a, vec b) { return a / b; }
    [[nodiscard]] static vec fma(vec a, vec b, vec c) { return a * b + c; }
    /// Returns the larger number per lane, or b if either is NaN. A NaN in `a` is lost here, but not in sums of exp2().
    [[nodiscard]] static vec max(vec a, vec b) { return a > b ? a : b; }

    /// Returns x in lanes with low <= key <= high, else `otherwise`.
    [[nodiscard]] static vec select_between(vec x, vec key, vec low, vec high, vec otherwise) {
        return ((key >= low) & (key <= high)) ? x : otherwise;
    }

    /// Returns 2^x with a relative error below 2e-7, 0 below 2^-126, NaN for NaN. Requires x <= 127.
    [[nodiscard]] static vec exp2(vec x) {
        const vec clamped = max(set1(-126.0f), x);
        const vec magic = set1(0x1.8p23f + 127.0f);
        const vec rounded = clamped + magic;
        const vec r = clamped - (rounded - magic);
        vec p = set1(1.535336188e-4f);
        p = p * r + set1(1.339887440e-3f);
        p = p * r + set1(9.618437357e-3f);
        p = p * r + set1(5.550332471e-2f);
        p = p * r + set1(2.402264791e-1f);
        p = p * r + set1(6.931472028e-1f);
        p = p * r + set1(1.0f);
        // The shift moves the integer part and the bias into the exponent's field. The multiplication keeps NaN.
        const vec power = reinterpret_cast<vec>(reinterpret_cast<ivec>(rounded) << 23);
        return x < -126.0f ? zero() : p * power;
    }

    [[nodiscard]] static float sum(vec x) { return (x[0] + x[1]) + (x[2] + x[3]); }
    [[nodiscard]] static float maximum(vec x) {
        const float a = x[0] > x[1] ? x[0] : x[1], b = x[2] > x[3] ? x[2] : x[3];
        return a > b ? a : b;
    }

    static void transpose(vec (&x)[lanes]) {
        for (int i = 0; i < lanes; ++i)
            for (int j = i + 1; j < lanes; ++j) {
                const float t = x[i][j];
                x[i][j] = x[j][i];
                x[j][i] = t;
            }
    }

    /// First step of summing each of several vectors: folds four vectors into one. join_folded() is the second step.
    [[nodiscard]] static vec fold(vec a, vec b, vec c, vec d) {
        vec x[4] = {a, b, c, d};
        transpose(x);
        return (x[0] + x[1]) + (x[2] + x[3]);
    }
    /// Returns a vector with the sums of the vectors that fold() received, four at a time.
    [[nodiscard]] static vec join_folded(const vec (&x)[lanes / 4]) { return x[0]; }
};

}  // namespace kvscope::kernels
