#pragma once

#include <cstdint>

#include "kernels/cpu/levels/expand_weights_body.h"
#include "kernels/cpu/levels/linear_tile_body.h"

namespace kvscope::kernels {

/// Products of very few rows with stored weights, decoded in registers into pairs of bf16 or into f32.
template <class Simd, class Factors>
struct LinearStored {
    using Tile = LinearTile<Simd, Factors>;
    using Layout = LinearLayout<Simd, Factors>;
    using Blocks = ExpandWeightsBody<Simd>;
    using vec = typename Simd::vec;
    using elem = typename Factors::elem;
    static constexpr int group_weights = Blocks::group_weights;
    static constexpr bool is_pairs =
        Factors::part_elements == group_weights;  ///< whether a group of weights is one operand
    static_assert(Factors::parts_of_step == 1 && (!is_pairs || Blocks::has_pairs));

    /// Adds products with weights [begin, begin + count). Returns false if the format has no blocks or x too many rows.
    [[nodiscard]] static bool multiply(const LinearTask& task, int64_t begin, int64_t count) {
        if (task.end_tile - task.first_tile > 1 || task.tiles.rows(task.first_tile) > most_rows) return false;
        return Blocks::with_blocks(task.format,
                                   [&](auto format) { multiply_format<decltype(format)>(task, begin, count); });
    }

 private:
    static constexpr int most_rows = 4;  ///< more would leave too few registers for sums and weights

    /// Weights of R outputs. A piece is read in advance, because a vector load soon after small stores must wait.
    template <class Format, int R>
    using Piece = typename Blocks::template Stretch<Format, R>;

    template <class Format, int R>
    static void read(const LinearTask& task, int64_t output, int64_t begin, int64_t count, Piece<Format, R>& piece) {
        const uint8_t* rows[R];
        Tile::rows_from(static_cast<const uint8_t*>(task.weight), static_cast<int64_t>(task.row_bytes), output,
                        task.n_outputs, rows);
        piece.read(rows, begin, count);
    }

    /// Number of outputs processed together. In f32, registers must also hold a group's integers and scales.
    template <int M>
    [[nodiscard]] static constexpr int outputs_beside() {
        if constexpr (is_pairs) return Tile::template outputs_beside<M>();
        if (M == 1 && Simd::direct_registers > 16) return 6;
        return M <= 2 ? 4 : M == 3 ? 3 : 2;
    }

    template <int M, int R, class Groups>
    [[gnu::always_inline]] static inline void accumulate(const elem* x, const Groups& groups, vec (&sums)[M * R]) {
        if constexpr (is_pairs) {
            typename Factors::operand weights[R];
            Blocks::numbers_of(groups, weights);
            Tile::template accumulate<M, R>(x, weights, sums);
        } else {
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r)
                Blocks::over_vectors(groups[r], [&](int i, vec weights) {
#pragma GCC unroll 4
                    for (int m = 0; m < M; ++m)
                        sums[m * R + r] = Factors::mac(
                            sums[m * R + r], Factors::load_packed(x + (i * M + m) * Factors::part_elements), weights);
                });
        }
    }

    template <class Format>
    static void multiply_format(const LinearTask& task, int64_t begin, int64_t count) {
        const int64_t rows = task.tiles.rows(task.first_tile);
        const elem* x = static_cast<const elem*>(task.x) +
                        task.tiles.begin(task.first_tile) * Layout::packed_elems(task.in) + begin * rows;
        Layout::template with_count<most_rows>(
            rows, [&](auto m) { multiply_rows<Format, decltype(m)::value>(task, x, begin, count); });
    }

    template <class Format, int M>
    static void multiply_rows(const LinearTask& task, const elem* x, int64_t begin, int64_t count) {
        constexpr int outputs = outputs_beside<M>();
        // The next piece's scales are read during this piece, so prefetch one piece further.
        const size_t ahead = Tile::template bytes_ahead<outputs>(task.row_bytes) + outputs * task.row_bytes;
        float* result = Tile::result_of(task, task.first_tile);
        Piece<Format, outputs> pieces[2];
        read<Format, outputs>(task, 0, begin, count, pieces[0]);
        for (int64_t o = 0; o < task.n_outputs; o += outputs) {
            if (o + outputs < task.n_outputs)
                read<Format, outputs>(task, o + outputs, begin, count, pieces[(o / outputs + 1) % 2]);
            vec sums[M * outputs];
            Tile::clear(sums);
            const elem* at = x;
            pieces[o / outputs % 2].over_groups(ahead, [&](int64_t, const auto& groups) {
                accumulate<M, outputs>(at, groups, sums);
                at += M * group_weights;
            });
            Tile::template leave<M, outputs>(sums, begin == 0, result + o * Tile::apart(M));
        }
    }
};

}  // namespace kvscope::kernels
