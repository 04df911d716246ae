#pragma once

// Included once per SIMD level, below its `#pragma GCC target`; see attention_block_body.h.

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/cpu/linear_task.h"
#include "kernels/cpu/weight_blocks_body.h"

namespace kvscope::kernels {

/// How f32 is multiplied: W elements at a time.
template <class Simd>
struct F32Factors {
    using T = float;     ///< as in the arrays
    using elem = float;  ///< as packed
    using vec = typename Simd::vec;
    using operand = vec;
    static constexpr int kStep = Simd::W;  ///< elements of `in` that one step covers
    static constexpr int kParts = 1;       ///< operands in which it does
    static constexpr int kPart = kStep;    ///< elems of an operand
    template <int part>
    static operand load(const T* p) {
        return Simd::load(p);
    }
    static operand load_packed(const elem* p) { return Simd::load(p); }
    static void store_packed(elem* p, operand x) { Simd::store(p, x); }
    static vec mac(vec acc, operand a, operand b) { return Simd::fma(a, b, acc); }
};

/// bf16 widened to f32: of 2 W elements first the even ones, then the odd ones, which takes one operation each.
template <class Simd>
struct WidenedFactors {
    using T = bf16;
    using elem = float;
    using vec = typename Simd::vec;
    using operand = vec;
    static constexpr int kStep = 2 * Simd::W;
    static constexpr int kParts = 2;
    static constexpr int kPart = Simd::W;
    template <int part>
    static operand load(const T* p) {
        vec even, odd;
        Simd::load_bf16_halves(p, even, odd);
        return part == 0 ? even : odd;
    }
    static operand load_packed(const elem* p) { return Simd::load(p); }
    static void store_packed(elem* p, operand x) { Simd::store(p, x); }
    static vec mac(vec acc, operand a, operand b) { return Simd::fma(a, b, acc); }
};

/// Products y = x W^T of any number of rows. Every (row, output) has a vector of W sums of its own, which goes through
/// `in` in the same order however many rows and outputs are worked on together, and whether the weight is read where it
/// lies or from a packed copy:
///   for each block of `in` (their sizes depend on `in` alone)
///       sums = 0; for each step: sums += x . w, lane by lane
///       result += the sums, added up across the lanes in a fixed tree
/// so that a row's result is the same to the last bit in whatever company.
template <class Simd, class Factors>
struct LinearBody {
    using vec = typename Simd::vec;
    using T = typename Factors::T;
    using elem = typename Factors::elem;
    using operand = typename Factors::operand;
    static constexpr int W = Simd::W;
    static constexpr int kStep = Factors::kStep;
    /// A tile's rows of x and of the weight: their sums fill the registers, the weight's operands and one of x beside.
    static constexpr int kRows = Simd::linear_rows;
    static constexpr int kOutputs = Simd::linear_outputs;
    /// Elements of `in` of a block at most: a tile's rows of x stay in the first-level cache.
    static constexpr int64_t kBlock = 4096 / sizeof(elem);

    /// Of a row of x: whole steps, zeros beyond `in`.
    static int64_t packed_elems(int64_t in) { return (in + kStep - 1) / kStep * kStep; }
    static size_t packed_bytes(int64_t in) { return static_cast<size_t>(packed_elems(in)) * sizeof(elem); }

    static size_t panel_bytes(int64_t in) {
        constexpr int64_t outputs = (kLinearPanel + kOutputs - 1) / kOutputs * kOutputs;
        return static_cast<size_t>(outputs * block_elements(in)) * sizeof(elem);
    }

    /// Of a stretch of decoded weights.
    static size_t decoded_bytes(int64_t in) { return static_cast<size_t>(kStretch * block_elements(in)) * sizeof(T); }

    static void pack_rows(const void* x, int64_t stride, int64_t n_rows, int64_t in, void* packed) {
        const int64_t width = packed_elems(in);
        for (int64_t row = 0; row < n_rows; ++row) {
            const T* const from[1] = {static_cast<const T*>(x) + row * stride};
            pack<1>(from, in, static_cast<elem*>(packed) + row * width);
        }
    }

    static void multiply(const LinearTask& task) {
        const int64_t block = block_elements(task.in);
        for (int64_t begin = 0; begin < task.in; begin += block) {
            const int64_t count = task.in - begin < block ? task.in - begin : block;
            if (task.packed_weight != nullptr)
                packed_block(task, begin, count);
            else
                direct_block(task, begin, count);
        }
        finish(task);
    }

 private:
    /// Blocks as equal as whole steps, and the 32 weights that stored formats hold together, allow.
    static int64_t block_elements(int64_t in) {
        constexpr int64_t together = kStep > 32 ? kStep : 32;
        const int64_t n_blocks = (in + kBlock - 1) / kBlock;
        return ((in + n_blocks - 1) / n_blocks + together - 1) / together * together;
    }

    /// A step's elements [0, count) and zeros.
    struct Rest {
        T data[kStep] = {};
        Rest(const T* from, int64_t count) {
            for (int64_t i = 0; i < count; ++i) data[i] = from[i];
        }
    };

    template <int part>
    static void pack_step(const T* from, elem* to, int64_t stride) {
        Factors::store_packed(to + part * stride, Factors::template load<part>(from));
        if constexpr (part + 1 < Factors::kParts) pack_step<part + 1>(from, to, stride);
    }

    /// N rows of `count` elements, operand by operand side by side: (steps, parts, N, kPart).
    template <int N>
    static void pack(const T* const (&rows)[N], int64_t count, elem* to) {
        constexpr int64_t stride = N * Factors::kPart;
        for (int64_t i = 0; i < count; i += kStep, to += Factors::kParts * stride)
            for (int r = 0; r < N; ++r) {
                if (i + kStep <= count)
                    pack_step<0>(rows[r] + i, to + r * Factors::kPart, stride);
                else
                    pack_step<0>(Rest(rows[r] + i, count - i).data, to + r * Factors::kPart, stride);
            }
    }

    /// Adds the sums up, each across its lanes by the same tree, and leaves or adds them as tile (M, R) of the result.
    template <int M, int R>
    [[gnu::always_inline]] static inline void leave(const vec (&sums)[M * R], bool first, float* result) {
        constexpr int groups = (M * R + W - 1) / W;
        float values[groups * W];
#pragma GCC unroll 8
        for (int group = 0; group < groups; ++group) {
            vec folded[W / 4];
#pragma GCC unroll 4
            for (int i = 0; i < W / 4; ++i) {
                const int at = group * W + 4 * i;
                folded[i] = at < M * R ? Simd::fold(sums[at], at + 1 < M * R ? sums[at + 1] : Simd::zero(),
                                                    at + 2 < M * R ? sums[at + 2] : Simd::zero(),
                                                    at + 3 < M * R ? sums[at + 3] : Simd::zero())
                                       : Simd::zero();
            }
            Simd::store(values + group * W, Simd::join_folded(folded));
        }
        if (first) {
            for (int m = 0; m < M; ++m)
                for (int r = 0; r < R; ++r) result[m * kLinearPanel + r] = values[m * R + r];
        } else {
            for (int m = 0; m < M; ++m)
                for (int r = 0; r < R; ++r) result[m * kLinearPanel + r] += values[m * R + r];
        }
    }

    template <int M, int R>
    [[gnu::always_inline]] static inline void accumulate(const elem* x, int64_t width, const operand (&weights)[R],
                                                         vec (&sums)[M * R]) {
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
            const operand value = Factors::load_packed(x + m * width);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) sums[m * R + r] = Factors::mac(sums[m * R + r], value, weights[r]);
        }
    }

    /// One step of a tile from the weight as it lies.
    template <int M, int R, int part = 0>
    [[gnu::always_inline]] static inline void direct_step(const elem* x, int64_t width, const T* const (&rows)[R],
                                                          vec (&sums)[M * R]) {
        operand weights[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) weights[r] = Factors::template load<part>(rows[r]);
        accumulate<M, R>(x + part * Factors::kPart, width, weights, sums);
        if constexpr (part + 1 < Factors::kParts) direct_step<M, R, part + 1>(x, width, rows, sums);
    }

    /// M rows of x times R rows of the weight, `count` elements of each.
    template <int M, int R>
    static void direct_tile(const elem* x, int64_t width, const T* const (&rows)[R], int64_t count, bool first,
                            float* result) {
        vec sums[M * R];
#pragma GCC unroll 24
        for (int i = 0; i < M * R; ++i) sums[i] = Simd::zero();
        int64_t i = 0;
        for (; i + kStep <= count; i += kStep) {
            const T* at[R];
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) at[r] = rows[r] + i;
            direct_step<M, R>(x + i, width, at, sums);
        }
        if (i < count) {
            T rest[R][kStep] = {};
            const T* at[R];
            for (int r = 0; r < R; ++r) {
                for (int64_t e = 0; i + e < count; ++e) rest[r][e] = rows[r][i + e];
                at[r] = rest[r];
            }
            direct_step<M, R>(x + i, width, at, sums);
        }
        leave<M, R>(sums, first, result);
    }

    /// The same with the weight's rows from a packed group.
    template <int M>
    static void packed_tile(const elem* x, int64_t width, const elem* group, int64_t steps, bool first, float* result) {
        constexpr int R = kOutputs;
        vec sums[M * R];
#pragma GCC unroll 24
        for (int i = 0; i < M * R; ++i) sums[i] = Simd::zero();
        for (int64_t i = 0; i < steps * Factors::kParts; ++i) {
            operand weights[R];
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) weights[r] = Factors::load_packed(group + r * Factors::kPart);
            accumulate<M, R>(x, width, weights, sums);
            group += R * Factors::kPart;
            x += Factors::kPart;
        }
        leave<M, R>(sums, first, result);
    }

    /// Rows of the weight that a few rows of x are multiplied with at once: with few sums more of them, so that the
    /// additions need not wait for one another.
    template <int M>
    static constexpr int outputs_beside() {
        return M == 1 && kOutputs < 4 ? 6 : M <= 2 && kOutputs < 4 ? 4 : kOutputs;
    }
    /// Outputs whose weights stay in the first-level cache for all groups of rows; whole tiles of each kind.
    static constexpr int64_t kStretch = 12;

    /// Calls `tiles` with the numbers of rows of tiles as equal as possible: 13 as 4, 3, 3 and 3.
    template <class Tiles>
    static void over_rows(int64_t n_rows, const Tiles& tiles) {
        const int64_t n_tiles = (n_rows + kRows - 1) / kRows;
        for (int64_t i = 0; i < n_tiles; ++i) {
            const int64_t begin = n_rows * i / n_tiles;
            with_count<kRows>(static_cast<int>(n_rows * (i + 1) / n_tiles - begin), [&](auto m) { tiles(begin, m); });
        }
    }
    template <int n>
    struct Count {
        static constexpr int value = n;
    };
    template <int n, class Call>
    static void with_count(int count, const Call& call) {
        if (count == n)
            call(Count<n>{});
        else if constexpr (n > 1)
            with_count<n - 1>(count, call);
    }

    /// A block of some of a task's rows of the weight, as T.
    struct WeightRows {
        const T* first = nullptr;  ///< of the row number `begin`
        int64_t stride = 0, begin = 0, end = 0;

        /// Beyond the last one that one again; nobody reads what comes of it.
        template <int R>
        void get(int64_t output, const T* (&rows)[R]) const {
            for (int r = 0; r < R; ++r) rows[r] = first + ((output + r < end ? output + r : end - 1) - begin) * stride;
        }
    };

    /// Rows [begin, end) of the weight: where they lie, or decoded.
    static WeightRows rows_of_weight(const LinearTask& task, int64_t begin, int64_t end, int64_t from, int64_t count) {
        const auto* stored = static_cast<const char*>(task.weight);
        if (task.decoded == nullptr)
            return {static_cast<const T*>(task.weight) + begin * task.in + from, task.in, begin, end};
        T* decoded = static_cast<T*>(task.decoded);
        const int64_t stride = block_elements(task.in);
        for (int64_t o = begin; o < end; ++o)
            WeightBlocksBody<Simd>::decode(task.format, stored + static_cast<size_t>(o) * task.row_bytes, from, count,
                                           decoded + (o - begin) * stride);
        return {decoded, stride, begin, end};
    }

    static void direct_block(const LinearTask& task, int64_t begin, int64_t count) {
        const int64_t width = packed_elems(task.in);
        for (int64_t stretch = 0; stretch < task.n_outputs; stretch += kStretch) {
            const int64_t end = stretch + kStretch < task.n_outputs ? stretch + kStretch : task.n_outputs;
            const WeightRows weights = rows_of_weight(task, stretch, end, begin, count);
            over_rows(task.n_rows, [&](int64_t row, auto m) {
                constexpr int M = decltype(m)::value, R = outputs_beside<M>();
                static_assert(kStretch % R == 0 && kLinearPanel % kStretch == 0);
                const elem* x = static_cast<const elem*>(task.x) + row * width + begin;
                for (int64_t o = stretch; o < end; o += R) {
                    const T* rows[R];
                    weights.get(o, rows);
                    direct_tile<M, R>(x, width, rows, count, begin == 0, task.result + row * kLinearPanel + o);
                }
            });
        }
    }

    static void packed_block(const LinearTask& task, int64_t begin, int64_t count) {
        const int64_t width = packed_elems(task.in), steps = (count + kStep - 1) / kStep;
        const int64_t group_elems = kOutputs * steps * kStep;
        elem* panel = static_cast<elem*>(task.packed_weight);
        for (int64_t o = 0; o < task.n_outputs; o += kOutputs) {
            const T* rows[kOutputs];
            const int64_t end = o + kOutputs < task.n_outputs ? o + kOutputs : task.n_outputs;
            rows_of_weight(task, o, end, begin, count).get(o, rows);
            pack<kOutputs>(rows, count, panel + o / kOutputs * group_elems);
        }
        over_rows(task.n_rows, [&](int64_t row, auto m) {
            const elem* x = static_cast<const elem*>(task.x) + row * width + begin;
            for (int64_t o = 0; o < task.n_outputs; o += kOutputs)
                packed_tile<decltype(m)::value>(x, width, panel + o / kOutputs * group_elems, steps, begin == 0,
                                                task.result + row * kLinearPanel + o);
        });
    }

    static void store(float* to, vec x) { Simd::store(to, x); }
    static void store(bf16* to, vec x) { Simd::store_bf16(to, x); }

    /// y = result + bias, rounded.
    template <class Y>
    static void write(const LinearTask& task, Y* y) {
        for (int64_t row = 0; row < task.n_rows; ++row) {
            const float* from = task.result + row * kLinearPanel;
            Y* to = y + row * task.y_stride;
            for (int64_t o = 0; o < task.n_outputs; o += W) {
                vec bias = Simd::zero();
                const int64_t left = task.n_outputs - o;
                if (task.bias != nullptr && left >= W) {
                    bias = Simd::load(task.bias + o);
                } else if (task.bias != nullptr) {
                    float values[W] = {};
                    for (int64_t i = 0; i < left; ++i) values[i] = task.bias[o + i];
                    bias = Simd::load(values);
                }
                const vec value = Simd::add(Simd::load(from + o), bias);
                if (left >= W) {
                    store(to + o, value);
                } else {
                    Y values[W];
                    store(values, value);
                    for (int64_t i = 0; i < left; ++i) to[o + i] = values[i];
                }
            }
        }
    }

    static void finish(const LinearTask& task) {
        if (task.y_dtype == DType::f32)
            write(task, static_cast<float*>(task.y));
        else
            write(task, static_cast<bf16*>(task.y));
    }
};

}  // namespace kvscope::kernels
