#pragma once

#include <cstdint>

#include "kernels/cpu/levels/expand_weights_body.h"
#include "kernels/cpu/levels/linear_packed_inputs_body.h"
#include "kernels/cpu/levels/linear_store_body.h"
#include "kernels/cpu/levels/linear_task.h"

namespace kvscope::kernels {

/// Products of many rows with transposed weights: a vector holds one output per lane, so no sum crosses lanes. Pass l
/// sums the elements of LinearDirect's lane l, and passes are added in LinearDirect's order, so both give the same
/// bits.
template <class Simd, class Factors>
struct LinearPanel {
    using Layout = LinearLayout<Simd, Factors>;
    using Blocks = ExpandWeightsBody<Simd>;
    using vec = typename Simd::vec;
    using T = typename Factors::T;
    using elem = typename Factors::elem;
    using operand = typename Factors::operand;
    static constexpr int lanes = Simd::lanes;
    static constexpr int step_elements = Factors::step_elements, parts_of_step = Factors::parts_of_step,
                         part_elements = Factors::part_elements;
    static constexpr int lane_elements = part_elements / lanes;  ///< elements per lane
    static constexpr int most_rows = Simd::panel_rows;
    static constexpr int group_vectors = 3;                      ///< vectors of outputs per group
    static constexpr int group_outputs = group_vectors * lanes;  ///< outputs per group
    static_assert(linear_panel_outputs % group_outputs == 0);

    [[nodiscard]] static size_t panel_bytes(int64_t in) {
        return static_cast<size_t>(linear_panel_outputs * Layout::block_elements(in)) * sizeof(elem);
    }
    [[nodiscard]] static size_t decoded_bytes(int64_t in) {
        return static_cast<size_t>(lanes * Layout::block_elements(in)) * sizeof(T);
    }

    static void multiply(const LinearTask& task) {
        const int64_t block = Layout::block_elements(task.in);
        for (int64_t begin = 0; begin < task.in; begin += block) {
            const int64_t count = task.in - begin < block ? task.in - begin : block;
            const int64_t operands = Layout::steps(count) * parts_of_step;
            auto* panel = static_cast<elem*>(task.panel);
            for (int64_t o = 0; o < task.n_outputs; o += lanes) transpose_panel(task, o, begin, count, operands, panel);
            for (int64_t tile = task.first_tile; tile < task.end_tile; ++tile) {
                const int64_t row = task.tiles.begin(tile), rows = task.tiles.rows(tile);
                const elem* x = static_cast<const elem*>(task.x) + row * Layout::packed_elems(task.in) + begin * rows;
                for (int64_t o = 0; o < task.n_outputs; o += group_outputs)
                    Layout::template with_count<most_rows>(rows, [&](auto m) {
                        multiply_tile<decltype(m)::value>(task, tile, o, x, panel + o * operands * part_elements,
                                                          operands, begin == 0, begin + count == task.in);
                    });
            }
        }
    }

 private:
    static constexpr int addition_levels = lanes == 16 ? 5 : lanes == 8 ? 4 : 3;  ///< levels of the tree of additions
    static_assert(1 << (addition_levels - 1) == lanes);

    /// Transposes `lanes` rows of the weight into the panel, whose groups have the layout (passes, operands,
    /// group_vectors, lanes).
    static void transpose_panel(const LinearTask& task, int64_t output, int64_t begin, int64_t count, int64_t operands,
                                elem* panel) {
        const T* rows[lanes];
        rows_of(task, output, begin, count, rows);
        elem* to = panel + output / group_outputs * group_outputs * operands * part_elements +
                   output % group_outputs * lane_elements;
        int64_t i = 0;
        for (; i + step_elements <= count; i += step_elements, to += parts_of_step * group_vectors * part_elements)
            turn_step<0>(rows, i, operands, to);
        if (i == count) return;
        const typename Layout::template Rest<lanes> rest(rows, i, count);
        turn_step<0>(rest.at, 0, operands, to);
    }

    static void rows_of(const LinearTask& task, int64_t output, int64_t begin, int64_t count, const T* (&rows)[lanes]) {
        const int64_t stride = Layout::block_elements(task.in);
        const char* stored[lanes];
        for (int64_t o = 0; o < lanes; ++o) {
            const int64_t row = output + o < task.n_outputs ? output + o : task.n_outputs - 1;
            stored[o] = static_cast<const char*>(task.weight) + static_cast<size_t>(row) * task.row_bytes;
            rows[o] = task.decoded != nullptr ? static_cast<const T*>(task.decoded) + o * stride
                                              : reinterpret_cast<const T*>(stored[o]) + begin;
        }
        for (int64_t o = 0; task.decoded != nullptr && o < lanes; o += 4) {
            const uint8_t* four[4];
            for (int r = 0; r < 4; ++r) four[r] = reinterpret_cast<const uint8_t*>(stored[o + r]);
            Blocks::decode(task.format, four, begin, count, lanes * task.row_bytes,
                           static_cast<T*>(task.decoded) + o * stride, stride);
        }
    }

    template <int part>
    static void turn_step(const T* const (&rows)[lanes], int64_t i, int64_t operands, elem* to) {
        vec x[lanes];
        for (int o = 0; o < lanes; ++o) x[o] = Factors::bits(Factors::template load<part>(rows[o] + i));
        Simd::transpose(x);
        for (int pass = 0; pass < lanes; ++pass)
            Factors::store_packed(to + (pass * operands + part) * group_vectors * part_elements,
                                  Factors::of_bits(x[Simd::lane_of_pass(pass)]));
        if constexpr (part + 1 < parts_of_step) turn_step<part + 1>(rows, i, operands, to);
    }

    /// Multiplies M rows by the weights of a group of outputs. The result is the last level of `sums` (addition_levels,
    /// M, group_vectors).
    template <int M>
    static void sum_passes(const elem* x, const elem* panel, int64_t operands, float* sums) {
        for (int pass = 0; pass < lanes; ++pass) {
            vec of_pass[M * group_vectors];
#pragma GCC unroll 24
            for (int i = 0; i < M * group_vectors; ++i) of_pass[i] = Simd::zero();
            const elem* at = x + Simd::lane_of_pass(pass) * lane_elements;
            for (int64_t n = 0; n < operands; ++n, at += M * part_elements, panel += group_vectors * part_elements) {
                operand weights[group_vectors];
#pragma GCC unroll 3
                for (int r = 0; r < group_vectors; ++r) weights[r] = Factors::load_packed(panel + r * part_elements);
#pragma GCC unroll 8
                for (int m = 0; m < M; ++m) {
                    const operand value = Factors::everywhere(at + m * part_elements);
#pragma GCC unroll 3
                    for (int r = 0; r < group_vectors; ++r)
                        of_pass[m * group_vectors + r] =
                            Factors::mac(of_pass[m * group_vectors + r], value, weights[r]);
                }
            }
            float* level = sums;
            for (int passes = pass; passes % 2 != 0; passes /= 2, level += M * group_vectors * lanes)
#pragma GCC unroll 24
                for (int i = 0; i < M * group_vectors; ++i)
                    of_pass[i] = Simd::add(Simd::load(level + i * lanes), of_pass[i]);
#pragma GCC unroll 24
            for (int i = 0; i < M * group_vectors; ++i) Simd::store(level + i * lanes, of_pass[i]);
        }
    }

    template <int M>
    static void multiply_tile(const LinearTask& task, int64_t tile, int64_t output, const elem* x, const elem* panel,
                              int64_t operands, bool first, bool last) {
        alignas(64) float sums[addition_levels * M * group_vectors * lanes];
        sum_passes<M>(x, panel, operands, sums);
        float* of_tile = task.result + (tile - task.first_tile) * linear_tile_floats;
        const float* sum = sums + (addition_levels - 1) * M * group_vectors * lanes;
        for (int m = 0; m < M; ++m) {
            float* result = of_tile + m * linear_panel_outputs + output;
            for (int r = 0; r < group_vectors; ++r, sum += lanes, result += lanes) {
                vec x = Simd::load(sum);
                if (!first) x = Simd::add(Simd::load(result), x);
                if (last)
                    LinearOutput<Simd>::write(task, task.tiles.begin(tile) + m, output + r * lanes, x);
                else
                    Simd::store(result, x);
            }
        }
    }
};

}  // namespace kvscope::kernels
