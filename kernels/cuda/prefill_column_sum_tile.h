#pragma once

#include "kernels/cuda/prefill_product.h"

/// Column sums of prefill attention, computed after the softmax of all rows. A block's rows are keys.
namespace kvscope::kernels::cuda {

/// The column sums of a problem, one block per head and tile of keys.
struct ColumnItem {
    int64_t item;
    int64_t n_tiles;
    int64_t first_block;
};

/// Constants of a block for all tiles of queries, in shared memory because all registers are used.
template <class T>
struct QueriesOfKeys {
    const PrefillAttention* problem;
    const T* q;              ///< queries of this head
    const Softmax* softmax;  ///< softmax sum of each query
    int64_t apart;           ///< elements between queries
    int head, first_key, n_keys, n_queries, head_dim;
    int begin, end;            ///< queries that see any of the keys
    int first_full, end_full;  ///< queries that see all of the keys
    float scale;               ///< factor that turns scores into logits in base 2
};

/// Two tiles of queries: one is processed while the next one is copied. In bf16, the keys first use the same memory.
template <class T, int D>
struct ColumnShared {
    using Shape = PrefillShape<T, D>;
    static constexpr int query_elements = Shape::tile_keys * Shape::row_stride;
    static constexpr int key_elements = Shape::tile_rows * Shape::row_stride;
    static_assert(!Shape::is_bf16 || key_elements <= 2 * query_elements);
    alignas(16) T queries[2 * query_elements];
    alignas(16) T own_keys[Shape::is_bf16 ? 8 : key_elements];
    alignas(16) Softmax softmax[2 * Shape::tile_keys];
    double sums[2 * Shape::n_pieces]
               [Shape::block_threads];  ///< each thread's own sums, for which there are no registers
    QueriesOfKeys<T> of_keys;
    int low[2 * Shape::tile_keys];  ///< first key that a query sees, if needed
    KVSCOPE_DEVICE T* keys() { return Shape::is_bf16 ? queries : own_keys; }
};

/// Returns the first query that does not see the keys before `key`. First keys never decrease.
KVSCOPE_DEVICE int64_t first_query_starting_at_key(const PrefillAttention& p, int64_t key) {
    if (!p.first_keys && p.sliding_window <= 0) return key > 0 ? p.n_queries : 0;
    int64_t low = 0, high = p.n_queries;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (first_key_seen_by(p, middle) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/// Sums each key's weights over the queries of one head, for a tile of keys and a chunk of queries. Unlike in
/// PrefillTile, the rows of a block are keys, and the loop is over query tiles, which sets the order of the sum.
template <class Block, class T, int D>
struct ColumnTile {
    using Product = PrefillProduct<Block, T, D>;
    using Fragments = typename Product::Fragments;
    using Shape = PrefillShape<T, D>;
    using Shared = ColumnShared<T, D>;
    static constexpr int tile_keys = Shape::tile_rows, tile_queries = Shape::tile_keys;
    static constexpr int thread_keys = 2 * Shape::n_pieces;  ///< keys per thread

    struct Thread {
        typename Product::Scores scores;
        Numbers<Fragments, Shape::is_bf16 ? D / 16 : 1> keys;
        Numbers<float, thread_keys> few;
    };
    using Threads = Own<Block, Thread>;

    const PrefillItem& item;
    const ColumnItem& columns;
    int64_t block_index;

    KVSCOPE_DEVICE ColumnTile(const PrefillItem& of, const ColumnItem& its, int64_t index)
        : item(of), columns(its), block_index(index) {}

    KVSCOPE_DEVICE QueriesOfKeys<T> queries_of() const {
        const PrefillAttention& p = item.problem;
        const int64_t at = block_index - columns.first_block;
        const auto q_begin = static_cast<int>(p.q_begin);
        QueriesOfKeys<T> of;
        of.problem = &p;
        of.head = static_cast<int>(at / columns.n_tiles);
        of.first_key = static_cast<int>(at % columns.n_tiles) * tile_keys;
        of.n_queries = static_cast<int>(p.n_queries);
        of.n_keys = min_of_two(tile_keys, q_begin + of.n_queries - of.first_key);
        of.head_dim = p.head_dim;
        of.apart = p.q_token_stride;
        of.q = static_cast<const T*>(p.q) + int64_t{of.head} * p.head_dim;
        of.softmax = item.sums + of.head * p.n_queries;
        of.scale = p.scale * log2_e;
        of.begin = max_of_two<int>(0, of.first_key - q_begin) / tile_queries * tile_queries;
        of.end = static_cast<int>(first_query_starting_at_key(p, of.first_key + of.n_keys));
        of.first_full = of.first_key + of.n_keys - 1 - q_begin;
        of.end_full = static_cast<int>(first_query_starting_at_key(p, of.first_key + 1));
        return of;
    }

    KVSCOPE_DEVICE void add(Block& block, Shared& shared) const {
        const QueriesOfKeys<T>& of = shared.of_keys;
        Threads threads;
        block.threads([&](int t) {
            if (t == 0) shared.of_keys = queries_of();
            KVSCOPE_UNROLL
            for (int i = 0; i < thread_keys; ++i) shared.sums[i][t] = 0;
        });
        load_keys(block, threads, shared);
        int query = of.begin, stage = 0;
        block.registers([&](int t) { copy_queries(t, query, stage, shared); });
        KVSCOPE_UNROLL_BY(1)
        for (; query < of.end; query += tile_queries, stage = 1 - stage) {
            block.threads([](int) { wait_for_copies<0>(); });
            block.anew([&](int t) { copy_queries(t, query + tile_queries, 1 - stage, shared); });
            if (query < of.first_full || min_of_two(query + tile_queries, of.n_queries) > of.end_full)
                add_tile<false>(block, query, stage, threads, shared);
            else
                add_tile<true>(block, query, stage, threads, shared);
        }
        block.registers([](int) { wait_for_copies<0>(); });
        write(block, shared);
    }

    KVSCOPE_DEVICE static void load_keys(Block& block, Threads& threads, Shared& shared) {
        const QueriesOfKeys<T>& of = shared.of_keys;
        const PrefillAttention& p = *of.problem;
        const int kv_head = of.head / (p.n_heads / p.n_kv_heads);
        const T* rows = static_cast<const T*>(p.k) + kv_head * p.kv_head_stride + int64_t{of.first_key} * p.head_dim;
        block.threads([&](int t) {
            Product::template copy_rows<tile_keys>(t, of.head_dim, shared.keys(), rows, of.head_dim, of.n_keys);
            commit_copies();
            wait_for_copies<0>();
        });
        if constexpr (Shape::is_bf16) {
            KVSCOPE_UNROLL
            for (int c = 0; c < D; c += 16)
                Product::load_rows(block, shared.keys(), c,
                                   [&](int t) -> Fragments& { return threads[t].keys[c / 16]; });
            block.threads([](int) {});
        }
    }

    /// Copies queries and their softmax, up to the last query that sees a key. Missing queries become zeros.
    KVSCOPE_DEVICE static void copy_queries(int t, int first, int stage, Shared& shared) {
        const QueriesOfKeys<T>& of = shared.of_keys;
        if (first < of.end) {
            Product::template copy_rows<tile_queries>(t, of.head_dim, shared.queries + stage * Shared::query_elements,
                                                      of.q + first * of.apart, of.apart, of.n_queries - first);
            if (t < tile_queries) {
                const int query = first + t, at = stage * tile_queries + t;
                begin_copy<sizeof(Softmax)>(shared.softmax + at, of.softmax + query, query < of.n_queries);
                // Queries before end_full see the first of these keys, so 0 is a valid lower bound for them.
                const bool may_not = query >= of.end_full && query < of.n_queries;
                shared.low[at] = may_not ? static_cast<int>(first_key_seen_by(*of.problem, query)) : 0;
            }
        }
        commit_copies();
    }

    /// Adds the weights of a tile in f32. In bf16, weights and products overlap. `seen`: every query sees every key.
    template <bool seen>
    KVSCOPE_DEVICE static void add_tile(Block& block, int query, int stage, Threads& threads, Shared& shared) {
        constexpr int part_queries = Shape::is_bf16 ? tile_queries / 2 : tile_queries;
        const auto scores = [&](int t) -> typename Product::Scores& { return threads[t].scores; };
        const T* queries = shared.queries + stage * Shared::query_elements;
        Own<Block, const T*> from;
        block.anew([&](int t) {
            from[t] = Product::begin_of(t, queries);
            threads[t].few = {};
        });
        Product::clear(block, scores);
        KVSCOPE_UNROLL
        for (int first = 0; first < tile_queries; first += part_queries) {
            if constexpr (Shape::is_bf16)
                Product::multiply_bf16(
                    block,
                    [&](int c) { return [&threads, c](int t) -> Fragments& { return threads[t].keys[c / 16]; }; },
                    [&](int t) { return from[t]; }, first, first + part_queries, scores);
            else
                Product::multiply_f32(block, shared.keys(), queries, scores);
            if constexpr (!seen)
                block.anew([&](int t) { mask(t, query, first, first + part_queries, stage, shared, threads[t]); });
            block.anew([&](int t) {
                KVSCOPE_UNROLL
                for (int column = first; column < first + part_queries; column += 8)
                    add_weights(t, column, shared.of_keys.scale, shared.softmax + stage * tile_queries, threads[t]);
            });
        }
        block.anew([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < thread_keys; ++i) shared.sums[i][t] += static_cast<double>(threads[t].few[i]);
        });
    }

    KVSCOPE_DEVICE static void mask(int t, int query, int begin, int end, int stage, const Shared& shared,
                                    Thread& own) {
        const QueriesOfKeys<T>& of = shared.of_keys;
        const int key = of.first_key + Product::row_of(t, 0), own_column = Product::first_column_of(t);
        const int apart = key - static_cast<int>(of.problem->q_begin) - query - own_column;
        KVSCOPE_UNROLL
        for (int column = begin; column < end; column += column % 2 == 0 ? 1 : 7) {
            const int low = shared.low[stage * tile_queries + column + own_column];
            KVSCOPE_UNROLL
            for (int i = 0; i < thread_keys; ++i) {
                const int row = Product::row_of(0, i);
                if (key + row < low || apart + row > column)
                    own.scores[i / 2][column / 8][i % 2 * 2 + column % 2] = unseen_logit;
            }
        }
    }

    /// Computes weights from the scores and the largest logit, with PrefillTile's rounding. Adds the weights.
    KVSCOPE_DEVICE static void add_weights(int t, int column, float scale, const Softmax* of_queries, Thread& own) {
        const Loaded<float> two =
            load_aligned(reinterpret_cast<const float*>(of_queries + column + Product::first_column_of(t)));
        KVSCOPE_UNROLL
        for (int i = 0; i < thread_keys; ++i) {
            KVSCOPE_UNROLL
            for (int e = 0; e < 2; ++e) {
                const float score = own.scores[i / 2][column / 8][i % 2 * 2 + e];
                const float weight = quick_exp2_of(multiply_add(score, scale, -two[2 * e]));
                own.few[i] = multiply_add(weight, two[2 * e + 1], own.few[i]);
            }
        }
    }

    /// Adds the sums of lanes that have the same keys and different queries. Writes the results.
    KVSCOPE_DEVICE static void write(Block& block, const Shared& shared) {
        const QueriesOfKeys<T>& of = shared.of_keys;
        const PrefillAttention& p = *of.problem;
        Own<Block, Numbers<double, thread_keys>> sums;
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < thread_keys; ++i) sums[t][i] = shared.sums[i][t];
        });
        block.join_lanes(sums, 1, Add{});
        block.join_lanes(sums, 2, Add{});
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < thread_keys; ++i) {
                const int row = Product::row_of(t, i), key = of.first_key + row;
                if (t % 4 != 0 || row >= of.n_keys) continue;
                const double n = p.cardinality ? static_cast<double>(p.cardinality[key]) : 1.0;
                p.column_sums[of.head * p.column_stride + key] += sums[t][i] * n;
            }
        });
    }
};

}  // namespace kvscope::kernels::cuda
