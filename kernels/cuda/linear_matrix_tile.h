#pragma once

#include "kernels/cuda/linear_tile.h"

/// Products in bf16, in pieces of 16 outputs x 16 elements x 8 rows (mma.m16n8k16). Each of a block's eight warps
/// handles every eighth group of elements. The sums are added pairwise, in an order that does not depend on M and R.
/// Weights and x use the same order of a piece's elements, so a thread takes eight adjacent elements at a time.
namespace kvscope::kernels::cuda {

inline constexpr int matrix_warps = 8, matrix_threads = 32 * matrix_warps;

inline constexpr int matrix_pieces_joined = 8;  ///< number of pieces that are joined together

template <int M, int R>
struct LinearMatrixShared {
    static constexpr int n_pieces = M * R < matrix_pieces_joined ? M * R : matrix_pieces_joined;
    alignas(16) Numbers<float, 4> sums[n_pieces][matrix_warps][32];
};

/// Product of M groups of eight rows of x and R groups of 16 outputs.
template <class Block, WeightFormat format, int M, int R>
struct LinearMatrixTile {
    static constexpr int block_outputs = 16 * R, block_rows = 8 * M;
    static constexpr bool has_blocks = can_load_block_parts(format);
    static constexpr int group_elements = has_blocks ? 128 : 64;  ///< elements per warp and step
    static constexpr int group_parts = group_elements / 32;  ///< parts of a group, each with eight elements per lane
    using Shared = LinearMatrixShared<M, R>;
    using Sums = Numbers<Numbers<float, 4>, M * R>;
    using Source = StoredPart<has_blocks ? format : WeightFormat::q4_0>;

    const LinearProblem& p;
    int64_t first_row, first_output;

    KVSCOPE_DEVICE void multiply(Block& block, Shared& shared) const {
        Own<Block, Sums> sums;
        block.registers([&](int t) { sums[t] = {}; });
        const int in = static_cast<int>(p.in);
        int at = 0;
        KVSCOPE_UNROLL_BY(1)
        for (; at + group_elements * matrix_warps <= in; at += group_elements * matrix_warps)
            add<true>(block, at, sums);
        if (at < in) add<false>(block, at, sums);
        KVSCOPE_UNROLL
        for (int first = 0; first < M * R; first += Shared::n_pieces) join_and_write(block, first, sums, shared);
    }

    /// Returns the first of a lane's eight elements in a part.
    KVSCOPE_DEVICE static int element_of(int t, int first, int part) {
        return first + t / 32 * group_elements + (has_blocks ? t % 4 * 32 + part * 8 : part * 32 + t % 4 * 8);
    }

    /// Returns the index of a lane's 32 weights within their block.
    KVSCOPE_DEVICE static int part_of(int t, int first) {
        return has_blocks ? element_of(t, first, 0) % static_cast<int>(block_size_of_format(format).n) / 32 : 0;
    }

    /// Multiplies part by part to save registers. `is_whole`: all warps have a full group, so loads need no condition.
    template <bool is_whole>
    KVSCOPE_DEVICE void add(Block& block, int first, Own<Block, Sums>& sums) const {
        Own<Block, Numbers<Source, 2 * R>> sources;
        if constexpr (has_blocks)
            block.anew([&](int t) {
                KVSCOPE_UNROLL
                for (int r = 0; r < 2 * R; ++r) sources[t][r] = block_at<is_whole>(t, r, element_of(t, first, 0));
            });
        KVSCOPE_UNROLL_BY(M > 4 && !has_blocks ? 1 : group_parts)
        for (int part = 0; part < group_parts; ++part) {
            Own<Block, Numbers<Numbers<Four, 2>, R>> weights;  // in the layout of the product, 16 elements each
            block.anew([&](int t) {
                KVSCOPE_UNROLL
                for (int r = 0; r < 2 * R; ++r) {
                    Four eight;
                    if constexpr (has_blocks)
                        eight = packed(sources[t][r].weights(part_of(t, first), part));
                    else
                        eight = weights_of<is_whole>(t, r, element_of(t, first, part));
                    KVSCOPE_UNROLL
                    for (int word = 0; word < 4; ++word)
                        weights[t][r / 2][word / 2][word % 2 * 2 + r % 2] = eight[word];
                }
            });
            KVSCOPE_UNROLL
            for (int m = 0; m < M; ++m) multiply<is_whole>(block, m, first, part, weights, sums);
        }
    }

    /// Multiplies the part's elements of rows 8 m to 8 m + 7.
    template <bool is_whole>
    KVSCOPE_DEVICE void multiply(Block& block, int m, int first, int part,
                                 Own<Block, Numbers<Numbers<Four, 2>, R>>& weights, Own<Block, Sums>& sums) const {
        Own<Block, Four> x;
        block.anew([&](int t) { x[t] = elements_of<is_whole>(t, m, element_of(t, first, part)); });
        KVSCOPE_UNROLL
        for (int half = 0; half < 2; ++half) {
            KVSCOPE_UNROLL
            for (int r = 0; r < R; ++r)
                block.multiply([&](int t) -> Numbers<float, 4>& { return sums[t][m * R + r]; },
                               [&](int t) -> const Four& { return weights[t][r][half]; },
                               [&](int t) { return x[t].at + 2 * half; });
        }
    }

    KVSCOPE_DEVICE const uint8_t* row_of(int t, int r) const {
        const int64_t output =
            min_of_two(first_output + t % 32 / 4 + 8 * r, p.out - 1);  // a repeated output is not written
        return p.weight + static_cast<size_t>(output) * p.row_bytes;
    }

    /// Loads the stored weights at `at`, or zeros past the last element.
    template <bool is_whole>
    KVSCOPE_DEVICE Source block_at(int t, int r, int at) const {
        constexpr WeightBlock stored = block_size_of_format(format);
        if (!is_whole && at >= p.in) return {};
        return load_block_part<format>(row_of(t, r) + static_cast<size_t>(at / stored.n) * stored.bytes,
                                       static_cast<int>(at % stored.n / 32));
    }

    template <bool is_whole>
    KVSCOPE_DEVICE Four weights_of(int t, int r, int at) const {
        if (!is_whole && at >= p.in) return {};
        const uint8_t* row = row_of(t, r);
        if constexpr (format == WeightFormat::bf16) return load_once(reinterpret_cast<const bf16*>(row) + at);
        return packed(weights_at<format>(row, at));
    }

    KVSCOPE_DEVICE static Four packed(const Weights& x) {
        return {{pack_bf16_pair(x[0], x[1]), pack_bf16_pair(x[2], x[3]), pack_bf16_pair(x[4], x[5]),
                 pack_bf16_pair(x[6], x[7])}};
    }

    /// Loads from row 8 m + lane / 4. If the row does not exist, loads the last row; its result is not written.
    template <bool is_whole>
    KVSCOPE_DEVICE Four elements_of(int t, int m, int at) const {
        if (!is_whole && at >= p.in) return {};
        const int row = min_of_two(static_cast<int>(first_row) + t % 32 / 4 + 8 * m, static_cast<int>(p.n_rows) - 1);
        const auto before = static_cast<uint32_t>(row) * static_cast<uint32_t>(p.x_stride);
        return load_aligned(static_cast<const bf16*>(p.x) + at + before).words;
    }

    KVSCOPE_DEVICE void join_and_write(Block& block, int first, Own<Block, Sums>& sums, Shared& shared) const {
        constexpr int n = Shared::n_pieces;
        if (first > 0) block.threads([](int) {});
        block.threads([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < n; ++i)
                if (first + i < M * R) shared.sums[i][t / 32][t % 32] = sums[t][first + i];
        });
        block.registers([&](int t) {
            const int piece = first + t / 32;
            if (t / 32 < n && piece < M * R) write(t % 32, piece, joined(shared.sums[t / 32], t % 32));
        });
    }

    KVSCOPE_DEVICE static Numbers<float, 4> joined(const Numbers<float, 4> (&of_warps)[matrix_warps][32], int lane) {
        Numbers<Numbers<float, 4>, matrix_warps> sums;
        KVSCOPE_UNROLL
        for (int warp = 0; warp < matrix_warps; ++warp) sums[warp] = of_warps[warp][lane];
        KVSCOPE_UNROLL
        for (int warps = matrix_warps / 2; warps > 0; warps /= 2) {
            KVSCOPE_UNROLL
            for (int warp = 0; warp < warps; ++warp) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 4; ++e) sums[warp][e] += sums[warp + warps][e];
            }
        }
        return sums[0];
    }

    KVSCOPE_DEVICE void write(int lane, int piece, const Numbers<float, 4>& sums) const {
        KVSCOPE_UNROLL
        for (int e = 0; e < 4; ++e) {
            const int64_t row = first_row + piece / R * 8 + 2 * (lane % 4) + e % 2;
            const int64_t output = first_output + piece % R * 16 + lane / 4 + e / 2 * 8;
            if (row < p.n_rows && output < p.out) write_linear_output(p, row, output, sums[e]);
        }
    }
};

}  // namespace kvscope::kernels::cuda
