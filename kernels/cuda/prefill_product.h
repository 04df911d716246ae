#pragma once

#include <limits>

#include "kernels/attention_prefill.h"
#include "kernels/cuda/tile.h"

/// Code that prefill_tile.h (attention) and prefill_column_sum_tile.h (column sums) share. As in mma.m16n8k16, a thread
/// holds two rows (lane / 4 and lane / 4 + 8) and two columns (from 2 (lane % 4) on) of each 16 x 8 piece of a product.
namespace kvscope::kernels::cuda {

inline constexpr int prefill_most_dim = 256;

template <class T, int D>
struct PrefillShape {
    static constexpr bool is_bf16 = sizeof(T) == 2;
    static constexpr int n_warps = !is_bf16 && D > 128 ? 2 : 4;
    static constexpr int block_threads = 32 * n_warps;
    /// Pieces of 16 rows per warp. With one piece, warps wait for shared memory; three pieces need too many registers.
    static constexpr int n_pieces = is_bf16 && D <= 128 ? 2 : 1;
    static constexpr int tile_rows = 16 * n_pieces * n_warps;
    static constexpr int tile_keys = is_bf16 ? (D > 128 ? 32 : 64) : (D > 128 ? 16 : 32);
    static constexpr int row_stride =
        D + elements_per_load<T>;  ///< row stride in shared memory: rows are 4 banks apart
    /// Number of blocks that must fit into a multiprocessor. Some blocks multiply while others compute weights.
    static constexpr int blocks_of_processor = is_bf16 && D <= 128 ? (D == 64 ? 3 : 2) : 1;
    static constexpr int column_blocks_of_processor =
        is_bf16 && D <= 128 ? 3 : 1;  ///< blocks per multiprocessor for column sums
};

/// A problem with first_keys in device memory. It has n_tiles tiles of rows per KV head, one block each.
struct PrefillItem {
    PrefillAttention problem;
    int64_t n_tiles;
    int64_t first_block;
    Softmax* sums;  ///< (H, n_queries) largest logit and 1 / total; nullptr if not needed
};

/// Score and logit of a key that a query does not see, so that its weight is 0.
inline constexpr float unseen_logit = -std::numeric_limits<float>::infinity();

KVSCOPE_DEVICE int64_t first_key_seen_by(const PrefillAttention& p, int64_t query) {
    if (p.first_keys) return p.first_keys[query];
    return p.sliding_window > 0 ? max_of_two<int64_t>(0, p.q_begin + query - p.sliding_window + 1) : 0;
}

/// Products of a block's rows and a tile's rows, separate for each warp.
template <class Block, class T, int D>
struct PrefillProduct {
    using Shape = PrefillShape<T, D>;
    static constexpr int n_pieces = Shape::n_pieces, row_stride = Shape::row_stride;
    static constexpr int product_columns = Shape::tile_keys;  ///< columns of a product
    static constexpr int elements_of_load = elements_per_load<T>;
    using Scores = Numbers<Numbers<Numbers<float, 4>, product_columns / 8>, n_pieces>;
    using Fragments = Numbers<Four, n_pieces>;  ///< 16 elements of a warp's rows

    KVSCOPE_DEVICE static int row_of(int t, int i) { return (t / 32 * n_pieces + i / 2) * 16 + t % 32 / 4 + i % 2 * 8; }

    /// Starts to copy `left` rows of d elements to shared memory, padded with zeros to n_rows and D.
    template <int n_rows>
    KVSCOPE_DEVICE static void copy_rows(int t, int d, T* to, const T* from, int64_t apart, int left) {
        constexpr int n_loads = D / elements_of_load;
        static_assert(n_rows * n_loads % Block::block_threads == 0);
        if constexpr (Block::block_threads % n_loads == 0) {
            constexpr int rows_at_once = Block::block_threads / n_loads;
            const int first = t / n_loads, c = t % n_loads * elements_of_load;
            const T* source = from + first * apart + c;
            if (c >= d) left = 0;
            KVSCOPE_UNROLL
            for (int row = 0; row < n_rows; row += rows_at_once) {
                begin_copy(to + (row + first) * row_stride + c, source, row + first < left);
                source += rows_at_once * apart;
            }
        } else {
            KVSCOPE_UNROLL
            for (int first = 0; first < n_rows * n_loads; first += Block::block_threads) {
                const int row = (first + t) / n_loads, c = (first + t) % n_loads * elements_of_load;
                begin_copy(to + row * row_stride + c, from + row * apart + c, row < left && c < d);
            }
        }
    }

    /// Returns the start of a thread's part of a tile's columns.
    KVSCOPE_DEVICE static const T* begin_of(int t, const T* columns) {
        return columns + (t % 32 / 16 * 8 + t % 8) * row_stride + t / 8 % 2 * 8;
    }

    /// Adds the unscaled products of rows and columns [begin, end) to `scores`. fragments(c)(t) returns the words of
    /// thread t in elements c to c + 15 of the rows; columns(t) returns begin_of(t, …).
    template <class Fragment, class Columns, class Score>
    KVSCOPE_DEVICE static void multiply_bf16(Block& block, const Fragment& fragments, const Columns& columns, int begin,
                                             int end, const Score& scores) {
        Own<Block, Four> b;
        KVSCOPE_UNROLL
        for (int c = 0; c < D; c += 16) {
            const auto a = fragments(c);
            KVSCOPE_UNROLL
            for (int n = begin / 8; n < end / 8; n += 2) {
                block.template load_matrices<false>([&](int t) -> Four& { return b[t]; },
                                                    [&](int t) { return columns(t) + n * 8 * row_stride + c; });
                KVSCOPE_UNROLL
                for (int half = 0; half < 2; ++half) {
                    KVSCOPE_UNROLL
                    for (int piece = 0; piece < n_pieces; ++piece)
                        block.multiply([&](int t) -> Numbers<float, 4>& { return scores(t)[piece][n + half]; },
                                       [&](int t) -> const Four& { return a(t)[piece]; },
                                       [&](int t) { return b[t].at + 2 * half; });
                }
            }
        }
    }

    template <class Fragment>
    KVSCOPE_DEVICE static void load_rows(Block& block, const T* rows, int c, const Fragment& to) {
        KVSCOPE_UNROLL
        for (int piece = 0; piece < n_pieces; ++piece)
            block.template load_matrices<false>([&](int t) -> Four& { return to(t)[piece]; },
                                                [&](int t) {
                                                    const int row = (t / 32 * n_pieces + piece) * 16 + t % 16;
                                                    return rows + row * row_stride + c + t % 32 / 16 * 8;
                                                });
    }

    template <class Score>
    KVSCOPE_DEVICE static void multiply_f32(Block& block, const T* rows, const T* columns, const Score& scores) {
        block.registers([&](int t) {
            const int lane = t % 32;
            const T* own = rows + (t / 32 * 16 + lane / 4) * row_stride;
            KVSCOPE_UNROLL_BY(1)
            for (int c = 0; c < D; c += 4) {
                const Loaded<T> upper = load_aligned(own + c), lower = load_aligned(own + 8 * row_stride + c);
                KVSCOPE_UNROLL
                for (int n = 0; n < product_columns / 8; ++n) {
                    KVSCOPE_UNROLL
                    for (int e = 0; e < 2; ++e) {
                        const Loaded<T> column = load_aligned(columns + (n * 8 + 2 * (lane % 4) + e) * row_stride + c);
                        Numbers<float, 4>& to = scores(t)[0][n];
                        KVSCOPE_UNROLL
                        for (int i = 0; i < 4; ++i) {
                            to[e] = multiply_add(upper[i], column[i], to[e]);
                            to[2 + e] = multiply_add(lower[i], column[i], to[2 + e]);
                        }
                    }
                }
            }
        });
    }

    template <class Score>
    KVSCOPE_DEVICE static void clear(Block& block, const Score& scores) {
        block.registers([&](int t) { each(scores(t), [](float& score, int, int) { score = 0; }); });
    }

    /// Calls f(score, row, column) for a thread's scores. `row` and `column` are relative to the thread's first ones.
    template <class F>
    KVSCOPE_DEVICE static void each(Scores& scores, const F& f) {
        KVSCOPE_UNROLL
        for (int piece = 0; piece < n_pieces; ++piece) {
            KVSCOPE_UNROLL
            for (int n = 0; n < product_columns / 8; ++n) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 4; ++e) f(scores[piece][n][e], 2 * piece + e / 2, n * 8 + e % 2);
            }
        }
    }
    KVSCOPE_DEVICE static int first_column_of(int t) { return 2 * (t % 4); }
};

}  // namespace kvscope::kernels::cuda
