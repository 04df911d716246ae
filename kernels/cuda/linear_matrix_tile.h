#pragma once

#include "kernels/cuda/linear_tile.h"

/// Products in bf16 as blocks work on them, in pieces of 16 outputs x 16 elements x 8 rows (mma.m16n8k16). The block's
/// warps share the elements: each goes through every eighth group of 64 of them, and their sums are added up pair by
/// pair. Which elements stand in which place of a piece is the same for outputs and rows alike, so a thread may take
/// eight neighbours at a time: of 32 elements one of four eights, or, where weights are stored in blocks, one of
/// four times 32, which it loads as a whole. Whatever M and R are, the order of a sum is the same.
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
    static constexpr bool kHasBlocks = loads_parts(format);
    static constexpr int kGroup = kHasBlocks ? 128 : 64;  ///< elements that a warp works on at once
    static constexpr int kParts = kGroup / 32;            ///< of a group, with an eight of each lane's
    using Shared = LinearMatrixShared<M, R>;
    using Sums = Numbers<Numbers<float, 4>, M * R>;
    using Source = StoredPart<kHasBlocks ? format : WeightFormat::q4_0>;

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

    /// The first of a lane's eight in a part.
    KVSCOPE_DEVICE static int64_t element_of(int t, int64_t first, int part) {
        return first + t / 32 * kGroup + (kHasBlocks ? t % 4 * 32 + part * 8 : part * 32 + t % 4 * 8);
    }

    /// Which 32 of its block a lane has.
    KVSCOPE_DEVICE static int part_of(int t, int64_t first) {
        return kHasBlocks ? static_cast<int>(element_of(t, first, 0) % block_of(format).n / 32) : 0;
    }

    /// Part after part: what a part needs is on its way at once, and leaves registers for the sums.
    KVSCOPE_DEVICE void add(Block& block, int64_t first, Own<Block, Sums>& sums) const {
        Own<Block, Numbers<Source, 2 * R>> sources;
        if constexpr (kHasBlocks)
            block.anew([&](int t) {
                KVSCOPE_UNROLL
                for (int r = 0; r < 2 * R; ++r) sources[t][r] = block_at(t, r, element_of(t, first, 0));
            });
        KVSCOPE_UNROLL_BY(M > 4 && !kHasBlocks ? 1 : kParts)
        for (int part = 0; part < kParts; ++part) {
            Own<Block, Numbers<Four, 2 * R>> weights;  // of the outputs lane / 4 and lane / 4 + 8
            Own<Block, Numbers<Four, M>> x;
            block.anew([&](int t) {
                const int64_t at = element_of(t, first, part);
                KVSCOPE_UNROLL
                for (int r = 0; r < 2 * R; ++r) {
                    if constexpr (kHasBlocks)
                        weights[t][r] = packed(sources[t][r].weights(part_of(t, first), part));
                    else
                        weights[t][r] = weights_of(t, r, at);
                }
                read_elements(first_row + t % 32 / 4, at, x[t]);
            });
            KVSCOPE_UNROLL
            for (int m = 0; m < M; ++m) {
                KVSCOPE_UNROLL
                for (int word = 0; word < 4; word += 2) multiply(block, m, word, weights, x, sums);
            }
        }
    }

    /// 16 elements, four of each lane: words `word` and the next.
    KVSCOPE_DEVICE static void multiply(Block& block, int m, int word, Own<Block, Numbers<Four, 2 * R>>& weights,
                                        Own<Block, Numbers<Four, M>>& x, Own<Block, Sums>& sums) {
        KVSCOPE_UNROLL
        for (int r = 0; r < R; ++r) {
            Own<Block, Four> a;
            block.registers([&](int t) {
                const Four &upper = weights[t][2 * r], &lower = weights[t][2 * r + 1];
                a[t] = {{upper[word], lower[word], upper[word + 1], lower[word + 1]}};
            });
            block.multiply([&](int t) -> Numbers<float, 4>& { return sums[t][m * R + r]; },
                           [&](int t) -> const Four& { return a[t]; }, [&](int t) { return x[t][m].at + word; });
        }
    }

    KVSCOPE_DEVICE const uint8_t* row_of(int t, int r) const {
        const int64_t output = least(first_output + t % 32 / 4 + 8 * r, p.out - 1);  // a repeated one is not written
        return p.weight + static_cast<size_t>(output) * p.row_bytes;
    }

    /// Behind the last element zeros, or with few rows some others, which meet the rows' zeros: what is loaded under no
    /// condition is loaded earlier, for which only they leave registers.
    KVSCOPE_DEVICE Source block_at(int t, int r, int64_t at) const {
        constexpr WeightBlock stored = block_of(format);
        if (M > 2 && at >= p.in) return {};
        at = least(at, p.in - 32);
        return load_part<format>(row_of(t, r) + static_cast<size_t>(at / stored.n) * stored.bytes,
                                 static_cast<int>(at % stored.n / 32));
    }

    KVSCOPE_DEVICE Four weights_of(int t, int r, int64_t at) const {
        if (M > 2 && at >= p.in) return {};
        at = least(at, p.in - kWeightsAtOnce);
        const uint8_t* row = row_of(t, r);
        if constexpr (format == WeightFormat::bf16) return load_once(reinterpret_cast<const bf16*>(row) + at);
        return packed(weights_at<format>(row, at));
    }

    KVSCOPE_DEVICE static Four packed(const Weights& x) {
        return {{pair_of(x[0], x[1]), pair_of(x[2], x[3]), pair_of(x[4], x[5]), pair_of(x[6], x[7])}};
    }

    /// Of every eighth row from `row` on.
    KVSCOPE_DEVICE void read_elements(int64_t row, int64_t at, Numbers<Four, M>& x) const {
        const bf16* from = static_cast<const bf16*>(p.x) + row * p.x_stride + at;
        KVSCOPE_UNROLL
        for (int m = 0; m < M; ++m) {
            x[m] = at < p.in && row + 8 * m < p.n_rows ? load_aligned(from).words : Four{};
            from += 8 * p.x_stride;
        }
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
