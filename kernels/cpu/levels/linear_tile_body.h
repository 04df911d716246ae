#pragma once

#include <cstdint>

#include "kernels/cpu/levels/linear_packed_inputs_body.h"
#include "kernels/cpu/levels/linear_store_body.h"
#include "kernels/cpu/levels/linear_task.h"

namespace kvscope::kernels {

/// Products of M rows of x with R rows of the weight, for few rows. Each pair has a vector of sums.
template <class Simd, class Factors>
struct LinearTile {
    using Layout = LinearLayout<Simd, Factors>;
    using vec = typename Simd::vec;
    using T = typename Factors::T;
    using elem = typename Factors::elem;
    using operand = typename Factors::operand;
    static constexpr int lanes = Simd::lanes;
    static constexpr int step_elements = Factors::step_elements, parts_of_step = Factors::parts_of_step,
                         part_elements = Factors::part_elements;
    static constexpr int most_rows = Simd::direct_rows;  ///< largest M
    /// Number of outputs per pass over all tiles, a multiple of all values of outputs_beside().
    static constexpr int64_t stretch_outputs = 12;
    static_assert(most_rows <= linear_tile_rows && linear_panel_outputs % stretch_outputs == 0);

    /// Returns R, the number of outputs whose sums fit into registers. For one row of x, a larger R overlaps additions.
    template <int M>
    [[nodiscard]] static constexpr int outputs_beside() {
        constexpr int fitting = (Simd::direct_registers - 1) / (M + 1);
        constexpr int outputs = fitting >= Simd::direct_outputs ? Simd::direct_outputs : fitting >= 4 ? 4 : fitting;
        static_assert(stretch_outputs % outputs == 0);
        return outputs < 4 && parts_of_step == 1 && 4 * M + M + 1 <= Simd::direct_registers ? 4 : outputs;
    }

    /// Returns the prefetch distance in bytes, a multiple of R rows, so that prefetches serve later groups of rows.
    template <int R>
    [[nodiscard]] static size_t bytes_ahead(size_t row_bytes) {
        constexpr size_t least_bytes_ahead = 4096;
        return (least_bytes_ahead + R * row_bytes - 1) / (R * row_bytes) * (R * row_bytes);
    }

    /// Returns R row pointers. Rows past `end` repeat the last one; their results are not used.
    template <int R, class Row>
    static void rows_from(const Row* first, int64_t stride, int64_t begin, int64_t end, const Row* (&rows)[R]) {
        for (int r = 0; r < R; ++r) rows[r] = first + (begin + r < end ? begin + r : end - 1) * stride;
    }

    template <int n>
    [[gnu::always_inline]] static inline void clear(vec (&sums)[n]) {
#pragma GCC unroll 32
        for (int i = 0; i < n; ++i) sums[i] = Simd::zero();
    }

    template <int M, int R>
    [[gnu::always_inline]] static inline void accumulate(const elem* x, const operand (&weights)[R],
                                                         vec (&sums)[M * R]) {
#pragma GCC unroll 16
        for (int m = 0; m < M; ++m) {
            const operand value = Factors::load_packed(x + m * part_elements);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) sums[m * R + r] = Factors::mac(sums[m * R + r], value, weights[r]);
        }
    }

    template <int M, int R, int part = 0>
    [[gnu::always_inline]] static inline void step(const elem* x, const T* const (&rows)[R], vec (&sums)[M * R]) {
        if constexpr (M * R + R + 1 > Simd::direct_registers) {
            operand values[M];
#pragma GCC unroll 8
            for (int m = 0; m < M; ++m) values[m] = Factors::load_packed(x + (part * M + m) * part_elements);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const operand weight = Factors::template load<part>(rows[r]);
#pragma GCC unroll 8
                for (int m = 0; m < M; ++m) sums[m * R + r] = Factors::mac(sums[m * R + r], values[m], weight);
            }
        } else {
            operand weights[R];
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) weights[r] = Factors::template load<part>(rows[r]);
            accumulate<M, R>(x + part * M * part_elements, weights, sums);
        }
        if constexpr (part + 1 < parts_of_step) step<M, R, part + 1>(x, rows, sums);
    }

    /// Adds the products of `count` elements per row. Prefetches weights that are `ahead` bytes after the current ones.
    template <int M, int R>
    [[gnu::always_inline]] static inline void add(const elem* x, const T* const (&rows)[R], int64_t count, size_t ahead,
                                                  vec (&sums)[M * R]) {
        int64_t i = 0;
        for (; i + step_elements <= count; i += step_elements, x += M * step_elements) {
            const T* at[R];
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                at[r] = rows[r] + i;
                if (ahead != 0) __builtin_prefetch(reinterpret_cast<const char*>(at[r]) + ahead);
            }
            step<M, R>(x, at, sums);
        }
        if (i == count) return;
        const typename Layout::template Rest<R> rest(rows, i, count);
        step<M, R>(x, rest.at, sums);
    }

    /// Returns the stride of a tile's results (outputs, stride). The results of one output are contiguous.
    [[nodiscard]] static constexpr int apart(int64_t n_rows) {
        return n_rows == 1 ? 1 : n_rows == 2 ? 2 : n_rows <= 4 ? 4 : n_rows <= 8 ? 8 : linear_tile_rows;
    }
    [[nodiscard]] static float* result_of(const LinearTask& task, int64_t tile) {
        return task.result + (tile - task.first_tile) * linear_tile_floats;
    }

    /// Sums each vector across its lanes in a fixed tree and stores or adds R outputs, padded to whole vectors.
    template <int M, int R>
    [[gnu::always_inline]] static inline void leave(const vec (&sums)[M * R], bool first, float* result) {
        constexpr int stride = apart(M);
#pragma GCC unroll 8
        for (int at = 0; at < R * stride; at += lanes) {
            const auto sum = [&](int i) {
                return i < R * stride && i % stride < M ? sums[i % stride * R + i / stride] : Simd::zero();
            };
            vec folded[lanes / 4];
#pragma GCC unroll 4
            for (int i = 0; i < lanes / 4; ++i) {
                const int four = at + 4 * i;
                folded[i] = Simd::fold(sum(four), sum(four + 1), sum(four + 2), sum(four + 3));
            }
            const vec x = Simd::join_folded(folded);
            Simd::store(result + at, first ? x : Simd::add(Simd::load(result + at), x));
        }
    }

    static void write_results(const LinearTask& task) {
        for (int64_t tile = task.first_tile; tile < task.end_tile; ++tile) {
            const int64_t row = task.tiles.begin(tile), rows = task.tiles.rows(tile), stride = apart(rows);
            const float* result = result_of(task, tile);
            for (int64_t o = 0; o < task.n_outputs; o += lanes) {
                if (stride == 1) {
                    LinearOutput<Simd>::write(task, row, o, Simd::load(result + o));
                    continue;
                }
                for (int64_t m = 0; m < rows; m += lanes) {
                    vec x[lanes];
                    for (int i = 0; i < lanes; ++i) x[i] = Simd::load(result + (o + i) * stride + m);
                    Simd::transpose(x);
                    for (int i = 0; i < lanes && m + i < rows; ++i)
                        LinearOutput<Simd>::write(task, row + m + i, o, x[i]);
                }
            }
        }
    }
};

}  // namespace kvscope::kernels
