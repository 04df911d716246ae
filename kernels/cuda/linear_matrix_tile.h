#pragma once

#include "kernels/cuda/linear_tile.h"

/// Products in bf16 as blocks work on them, in pieces of 16 outputs x 16 elements x 8 rows (mma.m16n8k16). The block's
/// warps share the elements: each goes through every eighth group of 64 of them, and their sums are added up pair by
/// pair. Which elements stand in which place of a piece is the same for outputs and rows alike, so a thread may take
/// eight neighbours at a time. Whatever M and R are, the order of a sum is the same.
namespace kvscope::kernels::cuda {

inline constexpr int kMatrixWarps = 8, kMatrixThreads = 32 * kMatrixWarps;

/// What the warps leave for one another.
template <int M, int R>
struct LinearMatrixShared {
    Numbers<float, 4> sums[kMatrixThreads / 2][M * R];
};

/// @tparam M eights of rows of x  @tparam R sixteens of outputs
template <class Block, WeightFormat format, int M, int R>
struct LinearMatrixTile {
    static constexpr int kOutputs = 16 * R, kRows = 8 * M;
    static constexpr int kGroup = 64;  ///< elements that a warp works on at once: a line of 128 bytes of bf16
    using Shared = LinearMatrixShared<M, R>;
    using Sums = Numbers<Numbers<float, 4>, M * R>;

    const LinearProblem& p;
    int64_t first_row, first_output;

    KVSCOPE_DEVICE void multiply(Block& block, Shared& shared) const {
        Own<Block, Sums> sums;
        block.registers([&](int t) { sums[t] = {}; });
        KVSCOPE_UNROLL_BY(1)
        for (int64_t at = 0; at < p.in; at += kGroup * kMatrixWarps) add(block, at, sums);
        for (int warps = kMatrixWarps / 2; warps > 0; warps /= 2) join_warps(block, warps, sums, shared);
        block.registers([&](int t) {
            if (t < 32) write(t, sums[t]);
        });
    }

    /// Of the 32 elements from `first` on those of a lane's quarter.
    KVSCOPE_DEVICE static int64_t element_of(int t, int64_t first, int half) {
        return first + t / 32 * kGroup + half * 32 + t % 4 * 8;
    }

    KVSCOPE_DEVICE void add(Block& block, int64_t first, Own<Block, Sums>& sums) const {
        Own<Block, Numbers<Numbers<Four, 2>, 2 * R>> weights;  // of the outputs lane / 4 and lane / 4 + 8
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int half = 0; half < 2; ++half) {
                KVSCOPE_UNROLL
                for (int r = 0; r < 2 * R; ++r)
                    weights[t][r][half] = weights_of(first_output + t % 32 / 4 + 8 * r, element_of(t, first, half));
            }
        });
        KVSCOPE_UNROLL
        for (int m = 0; m < M; ++m) {
            Own<Block, Numbers<Four, 2>> x;
            block.registers([&](int t) {
                KVSCOPE_UNROLL
                for (int half = 0; half < 2; ++half)
                    x[t][half] = elements_of(first_row + 8 * m + t % 32 / 4, element_of(t, first, half));
            });
            KVSCOPE_UNROLL
            for (int part = 0; part < 4;
                 ++part) {  // 16 elements, four of each lane: half part / 2, words from there on
                const int half = part / 2, word = part % 2 * 2;
                KVSCOPE_UNROLL
                for (int r = 0; r < R; ++r) {
                    Own<Block, Four> a;
                    block.registers([&](int t) {
                        const Four &upper = weights[t][2 * r][half], &lower = weights[t][2 * r + 1][half];
                        a[t] = {{upper[word], lower[word], upper[word + 1], lower[word + 1]}};
                    });
                    block.multiply([&](int t) -> Numbers<float, 4>& { return sums[t][m * R + r]; },
                                   [&](int t) -> const Four& { return a[t]; },
                                   [&](int t) { return x[t][half].at + word; });
                }
            }
        }
    }

    /// Zeros behind the last element; what a repeated last output or row becomes is not written.
    KVSCOPE_DEVICE Four weights_of(int64_t output, int64_t at) const {
        if (at >= p.in) return {};
        const uint8_t* row = p.weight + static_cast<size_t>(least(output, p.out - 1)) * p.row_bytes;
        if constexpr (format == WeightFormat::bf16) return load_aligned(reinterpret_cast<const bf16*>(row) + at).words;
        const Weights x = weights_at<format>(row, at);
        return {{pair_of(x[0], x[1]), pair_of(x[2], x[3]), pair_of(x[4], x[5]), pair_of(x[6], x[7])}};
    }

    KVSCOPE_DEVICE Four elements_of(int64_t row, int64_t at) const {
        if (at >= p.in) return {};
        return load_aligned(static_cast<const bf16*>(p.x) + least(row, p.n_rows - 1) * p.x_stride + at).words;
    }

    /// Of twice as many warps the sums of the upper ones to those of the lower.
    KVSCOPE_DEVICE static void join_warps(Block& block, int warps, Own<Block, Sums>& sums, Shared& shared) {
        block.threads([&](int t) {
            if (t / 32 < warps || t / 32 >= 2 * warps) return;
            KVSCOPE_UNROLL
            for (int i = 0; i < M * R; ++i) shared.sums[t - 32 * warps][i] = sums[t][i];
        });
        block.threads([&](int t) {
            if (t / 32 >= warps) return;
            KVSCOPE_UNROLL
            for (int i = 0; i < M * R; ++i) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 4; ++e) sums[t][i][e] += shared.sums[t][i][e];
            }
        });
    }

    KVSCOPE_DEVICE void write(int lane, const Sums& sums) const {
        KVSCOPE_UNROLL
        for (int i = 0; i < M * R; ++i) {
            KVSCOPE_UNROLL
            for (int e = 0; e < 4; ++e) {
                const int64_t row = first_row + i / R * 8 + 2 * (lane % 4) + e % 2;
                const int64_t output = first_output + i % R * 16 + lane / 4 + e / 2 * 8;
                if (row < p.n_rows && output < p.out) write_sum(p, row, output, sums[i][e]);
            }
        }
    }
};

}  // namespace kvscope::kernels::cuda
