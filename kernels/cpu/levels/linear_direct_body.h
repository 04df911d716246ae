#pragma once

#include <cstdint>

#include "kernels/cpu/levels/expand_weights_body.h"
#include "kernels/cpu/levels/linear_stored_body.h"
#include "kernels/cpu/levels/linear_tile_body.h"

namespace kvscope::kernels {

/// Products of few rows, which read the weights in place.
template <class Simd, class Factors>
struct LinearDirect {
    using Tile = LinearTile<Simd, Factors>;
    using Layout = LinearLayout<Simd, Factors>;
    using Blocks = ExpandWeightsBody<Simd>;
    using T = typename Factors::T;
    using elem = typename Factors::elem;
    static constexpr bool reads_stored = Factors::part_elements == 32 ? Blocks::has_pairs : sizeof(T) == sizeof(float);
    /// Whether the product runs in pieces, because a block of a tile's rows of x exceeds the first-level cache.
    static constexpr bool has_pieces = Tile::most_rows * Layout::most_block_elements * sizeof(elem) > 32768;
    static constexpr int64_t most_rows_of_piece = 32;  ///< most rows of x in a piece
    static constexpr int64_t piece_bytes = 16384;      ///< bytes of x in a piece, plus up to one step of 256 elements
    static constexpr int64_t waiting_floats =
        has_pieces ? Simd::lanes : 0;  ///< floats of a sum that is kept between pieces

    [[nodiscard]] static size_t decoded_bytes(int64_t in) {
        return static_cast<size_t>(Tile::stretch_outputs * Layout::block_elements(in)) * sizeof(T);
    }

    static void multiply(const LinearTask& task) {
        const int64_t block = Layout::block_elements(task.in);
        for (int64_t begin = 0; begin < task.in; begin += block) {
            const int64_t count = task.in - begin < block ? task.in - begin : block;
            if (!multiply_stored(task, begin, count)) multiply_numbers(task, begin, count);
        }
        Tile::write_results(task);
    }

 private:
    [[nodiscard]] static bool multiply_stored(const LinearTask& task, int64_t begin, int64_t count) {
        if constexpr (reads_stored)
            return task.decoded != nullptr && LinearStored<Simd, Factors>::multiply(task, begin, count);
        else
            return false;
    }

    [[nodiscard]] static int64_t piece_elements(const LinearTask& task, int64_t count) {
        if constexpr (!has_pieces) return count;
        const int64_t rows = task.tiles.begin(task.end_tile) - task.tiles.begin(task.first_tile);
        return piece_bytes / (rows * static_cast<int64_t>(sizeof(elem))) / 256 * 256 + 256;
    }

    static void multiply_numbers(const LinearTask& task, int64_t begin, int64_t count) {
        const int64_t length = piece_elements(task, count);
        for (int64_t stretch = 0; stretch < task.n_outputs; stretch += Tile::stretch_outputs) {
            alignas(64) float waiting[has_pieces ? Tile::stretch_outputs * most_rows_of_piece * Simd::lanes : 1];
            Piece piece;  // NOLINT(*-member-init): filled below
            piece.output = stretch;
            piece.end =
                stretch + Tile::stretch_outputs < task.n_outputs ? stretch + Tile::stretch_outputs : task.n_outputs;
            piece.waiting = waiting;
            piece.adds = begin != 0;
            for (int64_t done = 0; done < count; done += piece.count) {
                piece.begin = begin + done;
                piece.count = count - done < length ? count - done : length;
                piece.first = done == 0;
                piece.last = done + piece.count == count;
                multiply_piece(task, piece);
            }
        }
    }

    struct Piece {
        int64_t output, end;   ///< first output and end of the stretch
        int64_t begin, count;  ///< first element of `in`, and number of elements
        float* waiting;        ///< (outputs, rows, lanes) kept sums
        bool first, last;      ///< whether this is the first or last piece of the block of `in`
        bool adds;             ///< whether to add to the results of earlier blocks
    };

    static void multiply_piece(const LinearTask& task, const Piece& piece) {
        const bool is_stored = task.decoded != nullptr;
        const T* weights =
            is_stored ? decode(task, piece) : static_cast<const T*>(task.weight) + piece.output * task.in + piece.begin;
        const int64_t stride = is_stored ? Layout::block_elements(task.in) : task.in;
        float* waiting = piece.waiting;
        for (int64_t tile = task.first_tile; tile < task.end_tile; ++tile) {
            Layout::template with_count<Tile::most_rows>(task.tiles.rows(tile), [&](auto m) {
                multiply_tile<decltype(m)::value>(task, piece, tile, weights, stride, waiting);
            });
            waiting += task.tiles.rows(tile) * Tile::stretch_outputs * waiting_floats;
        }
    }

    [[nodiscard]] static const T* decode(const LinearTask& task, const Piece& piece) {
        T* decoded = static_cast<T*>(task.decoded);
        const int64_t stride = Layout::block_elements(task.in);
        for (int64_t o = piece.output; o < piece.end; o += 4) {
            const uint8_t* rows[4];
            Tile::rows_from(static_cast<const uint8_t*>(task.weight), static_cast<int64_t>(task.row_bytes), o,
                            piece.end, rows);
            Blocks::decode(task.format, rows, piece.begin, piece.count, Tile::stretch_outputs * task.row_bytes,
                           decoded + (o - piece.output) * stride, stride);
        }
        return decoded;
    }

    template <int M>
    static void multiply_tile(const LinearTask& task, const Piece& piece, int64_t tile, const T* weights,
                              int64_t stride, float* waiting) {
        constexpr int outputs = Tile::template outputs_beside<M>();
        const size_t ahead = task.decoded != nullptr ? 0 : Tile::template bytes_ahead<outputs>(task.row_bytes);
        const elem* x =
            static_cast<const elem*>(task.x) + task.tiles.begin(tile) * Layout::packed_elems(task.in) + piece.begin * M;
        float* result = Tile::result_of(task, tile);
        for (int64_t o = piece.output; o < piece.end; o += outputs, waiting += M * outputs * waiting_floats) {
            const T* rows[outputs];
            Tile::rows_from(weights, stride, o - piece.output, piece.end - piece.output, rows);
            typename Simd::vec sums[M * outputs];
#pragma GCC unroll 32
            for (int i = 0; i < M * outputs; ++i)
                sums[i] = !has_pieces || piece.first ? Simd::zero() : Simd::load(waiting + i * Simd::lanes);
            Tile::template add<M, outputs>(x, rows, piece.count, ahead, sums);
            if (!has_pieces || piece.last) {
                Tile::template leave<M, outputs>(sums, !piece.adds, result + o * Tile::apart(M));
                continue;
            }
#pragma GCC unroll 32
            for (int i = 0; i < M * outputs; ++i) Simd::store(waiting + i * Simd::lanes, sums[i]);
        }
    }
};

}  // namespace kvscope::kernels
