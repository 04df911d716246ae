#pragma once

#include "kernels/cuda/tile.h"
#include "kernels/window_attention.h"

/// Window attention by blocks. Each thread has one key and loops over the queries, 16 at a time.
namespace kvscope::kernels::cuda {

inline constexpr int window_tile_keys = 128;    ///< keys per tile and threads per block
inline constexpr int window_tile_queries = 16;  ///< queries processed together
inline constexpr int window_tile_dims = 32;     ///< elements of a head in shared memory at a time

struct WindowShared {
    float keys[window_tile_keys][window_tile_dims + 1];
    float queries[window_tile_queries][window_tile_dims];
    Softmax warps[window_tile_queries][window_tile_keys / 32];
};

template <class Block, class T>
struct WindowTile {
    using Logits = Numbers<float, window_tile_queries>;

    const WindowAttention& p;
    int64_t n_keys, first_key;  ///< number of all keys, and first key of the tile

    /// Computes the logits (base 2) of the thread's key for window_tile_queries queries from `first` on; masked_logit
    /// if unseen.
    KVSCOPE_DEVICE void logits(Block& block, int head, int first, WindowShared& shared, Own<Block, Logits>& out) const {
        block.registers([&](int t) { out[t] = {}; });
        for (int c = 0; c < p.head_dim; c += window_tile_dims) {
            block.threads([&](int t) { read(t, head, first, c, shared); });
            block.threads([&](int t) {
                KVSCOPE_UNROLL
                for (int e = 0; e < window_tile_dims; ++e) {
                    const float key = shared.keys[t][e];
                    KVSCOPE_UNROLL
                    for (int i = 0; i < window_tile_queries; ++i)
                        out[t][i] = multiply_add(shared.queries[i][e], key, out[t][i]);
                }
            });
        }
        const float scale = p.scale * log2_e;
        block.registers([&](int t) {
            const int64_t key = first_key + t;
            KVSCOPE_UNROLL
            for (int i = 0; i < window_tile_queries; ++i) {
                const int64_t position = p.n_tokens - p.window + first + i;
                const bool seen = first + i < p.window && key < n_keys && key <= position &&
                                  (p.sliding_window == 0 || key > position - p.sliding_window);
                out[t][i] = seen ? multiply_rounded(out[t][i], scale) : masked_logit;
            }
        });
    }

    KVSCOPE_DEVICE void read(int t, int head, int first, int c, WindowShared& shared) const {
        const int kv_head = head / (p.n_heads / p.n_kv_heads);
        const T* keys = static_cast<const T*>(p.keys) + kv_head * p.key_head_stride + first_key * p.head_dim + c;
        const float* queries = p.queries + head * p.query_head_stride + int64_t{first} * p.head_dim + c;
        for (int i = t; i < window_tile_keys * window_tile_dims; i += Block::block_threads) {
            const int row = i / window_tile_dims, e = i % window_tile_dims;
            const bool exists = first_key + row < n_keys && c + e < p.head_dim;
            shared.keys[row][e] = exists ? to_float(keys[int64_t{row} * p.head_dim + e]) : 0.0f;
        }
        for (int i = t; i < window_tile_queries * window_tile_dims; i += Block::block_threads) {
            const int row = i / window_tile_dims, e = i % window_tile_dims;
            const bool exists = first + row < p.window && c + e < p.head_dim;
            shared.queries[row][e] = exists ? queries[int64_t{row} * p.head_dim + e] : 0.0f;
        }
    }

    /// Writes the softmax sums of this tile's keys to sums[query * apart].
    KVSCOPE_DEVICE void sum(Block& block, int head, int first, WindowShared& shared, Softmax* sums,
                            int64_t apart) const {
        Own<Block, Logits> x;
        logits(block, head, first, shared, x);
        Own<Block, Softmax> own;
        KVSCOPE_UNROLL  // unrolling keeps x in registers
            for (int i = 0; i < window_tile_queries; ++i) {
            block.registers([&](int t) { own[t] = x[t][i] < lowest_maximum ? Softmax{} : Softmax{x[t][i], 1.0f}; });
            KVSCOPE_UNROLL
            for (int step = 16; step > 0; step /= 2) block.join_lanes(own, step, Join{});
            block.registers([&](int t) {
                if (t % 32 == 0) shared.warps[i][t / 32] = own[t];
            });
        }
        block.threads([](int) {});
        block.registers([&](int t) {
            if (t >= window_tile_queries || first + t >= p.window) return;
            Softmax all = shared.warps[t][0];
            for (int warp = 1; warp < window_tile_keys / 32; ++warp) all = Join{}(all, shared.warps[t][warp]);
            sums[(first + t) * apart] = all;
        });
    }

    /// Returns the weight of a thread's key for one query. `of_query` is the result of join_window_softmax().
    KVSCOPE_DEVICE static float weight(float logit, const Softmax& of_query) {
        return exp2_of(logit - of_query.largest) * of_query.total;
    }

    /// Computes the mean weight of the tile's keys over the window's queries. totals (w): softmax sums of the head.
    KVSCOPE_DEVICE void mean(Block& block, int head, const Softmax* totals, WindowShared& shared) const {
        Own<Block, float> sum;
        Own<Block, Logits> x;
        block.registers([&](int t) { sum[t] = 0; });
        KVSCOPE_UNROLL_BY(1)
        for (int first = 0; first < p.window; first += window_tile_queries) {
            logits(block, head, first, shared, x);
            block.registers([&](int t) {
                KVSCOPE_UNROLL
                for (int i = 0; i < window_tile_queries; ++i)
                    if (first + i < p.window) sum[t] += weight(x[t][i], totals[first + i]);
            });
        }
        block.registers([&](int t) {
            if (first_key + t < n_keys) p.mean[head * n_keys + first_key + t] = sum[t] / static_cast<float>(p.window);
        });
    }

    /// Computes each key's largest weight in any KV head, averaged over queries. totals (H, w): softmax sums.
    KVSCOPE_DEVICE void peak(Block& block, const Softmax* totals, WindowShared& shared) const {
        struct Thread {
            float sum;
            Logits of_head, most;
        };
        Own<Block, Thread> own;
        Own<Block, Logits> x;
        const int group = p.n_heads / p.n_kv_heads;
        block.registers([&](int t) { own[t].sum = 0; });
        KVSCOPE_UNROLL_BY(1)
        for (int first = 0; first < p.window; first += window_tile_queries) {
            block.registers([&](int t) { own[t].most = own[t].of_head = {}; });
            KVSCOPE_UNROLL_BY(1)
            for (int head = 0; head < p.n_heads; ++head) {
                logits(block, head, first, shared, x);
                block.registers([&](int t) {
                    KVSCOPE_UNROLL
                    for (int i = 0; i < window_tile_queries; ++i) {
                        if (first + i < p.window)
                            own[t].of_head[i] +=
                                weight(x[t][i], totals[head * p.window + first + i]) / static_cast<float>(group);
                        if ((head + 1) % group != 0) continue;
                        own[t].most[i] = larger_or_nan(own[t].most[i], own[t].of_head[i]);
                        own[t].of_head[i] = 0;
                    }
                });
            }
            block.registers([&](int t) {
                KVSCOPE_UNROLL
                for (int i = 0; i < window_tile_queries; ++i)
                    own[t].sum += own[t].most[i] / static_cast<float>(p.window);
            });
        }
        block.registers([&](int t) {
            if (first_key + t < n_keys) p.mean[first_key + t] = own[t].sum;
        });
    }

    KVSCOPE_DEVICE static float larger_or_nan(float a, float b) { return !(a >= b) && a == a ? b : a; }
};

/// Joins one query's row of sums (queries, tiles) in order. Returns the largest logit and 1 / total.
KVSCOPE_DEVICE Softmax join_window_softmax(const Softmax* sums, int64_t n_tiles, int64_t query) {
    Softmax total;
    for (int64_t tile = 0; tile < n_tiles; ++tile) total = Join{}(total, sums[query * n_tiles + tile]);
    return {total.largest, reciprocal_or_zero(total.total)};
}

}  // namespace kvscope::kernels::cuda
