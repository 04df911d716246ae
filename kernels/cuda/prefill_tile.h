#pragma once

#include "kernels/cuda/prefill_product.h"

/// Prefill attention: a block's rows are queries of one KV head. Tiles of keys begin at multiples of their size.
namespace kvscope::kernels::cuda {

/// A row of a block and its visible keys. For a row that does not exist, high is below 0.
struct PrefillRow {
    int query, head;
    int low, high;
};

/// Constants of a block for all tiles of keys, in shared memory because all registers are used.
template <class T>
struct KeysOfRows {
    const T *k, *v;
    int begin, end, head_dim;
    int first_full, last_full;  ///< keys that all rows see
    float scale;                ///< factor that turns scores into logits in base 2
    const float* cardinality;
    const PrefillItem* item;
};

template <class T, int D>
struct PrefillShared {
    using Shape = PrefillShape<T, D>;
    alignas(16) T queries[Shape::tile_rows * Shape::row_stride];
    alignas(16) T keys[Shape::tile_keys * Shape::row_stride];
    alignas(16) T values[Shape::tile_keys * Shape::row_stride];
    alignas(16) float weights[Shape::is_bf16 ? 4 : Shape::tile_rows * (Shape::tile_keys + 4)];
    float counts[Shape::tile_keys];
    PrefillRow rows[Shape::tile_rows];
    KeysOfRows<T> of_rows;
};

template <class Block, class T, int D>
struct PrefillTile {
    using Product = PrefillProduct<Block, T, D>;
    using Shape = PrefillShape<T, D>;
    using Shared = PrefillShared<T, D>;
    static constexpr int tile_keys = Shape::tile_keys, tile_rows = Shape::tile_rows, row_stride = Shape::row_stride;
    static constexpr int n_pieces = Shape::n_pieces;
    using OfRows = Numbers<float, 2 * n_pieces>;  ///< one number per row of a thread

    struct Thread {
        Numbers<Numbers<Numbers<float, 4>, D / 8>, n_pieces> out;
        typename Product::Scores scores;
        OfRows largest, total;  ///< logit in base 2, and sum of weights
    };
    using Threads = Own<Block, Thread>;

    const PrefillItem& item;
    const PrefillAttention& problem;
    int64_t block_index;

    KVSCOPE_DEVICE PrefillTile(const PrefillItem& of, int64_t index)
        : item(of), problem(of.problem), block_index(index - of.first_block) {}

    KVSCOPE_DEVICE int kv_head() const { return static_cast<int>(block_index % problem.n_kv_heads); }

    KVSCOPE_DEVICE PrefillRow row(int i) const {
        const int group = problem.n_heads / problem.n_kv_heads;
        const int64_t first =
            (item.n_tiles - 1 - block_index / problem.n_kv_heads) * tile_rows;  // the longest tile comes first
        const int at = static_cast<int>(first % group) + i;
        const int query = static_cast<int>(first / group) + at / group, head = kv_head() * group + at % group;
        if (query >= problem.n_queries) return {query, head, 0, -1};
        const auto q_begin = static_cast<int>(problem.q_begin);
        return {query, head, static_cast<int>(first_key_seen_by(problem, query)), q_begin + query};
    }

    KVSCOPE_DEVICE KeysOfRows<T> keys_of_rows() const {
        KeysOfRows<T> keys;
        const PrefillRow first = row(0);
        const int last = min_of_two(static_cast<int>(problem.n_queries) - 1, row(tile_rows - 1).query);
        keys.k = static_cast<const T*>(problem.k) + kv_head() * problem.kv_head_stride;
        keys.v = static_cast<const T*>(problem.v) + kv_head() * problem.kv_head_stride;
        keys.begin = first.low / tile_keys * tile_keys;
        keys.end = static_cast<int>(problem.q_begin) + last + 1;
        keys.head_dim = problem.head_dim;
        keys.first_full = static_cast<int>(first_key_seen_by(problem, last));
        keys.last_full = first.high;
        keys.scale = problem.scale * log2_e;
        keys.cardinality = problem.cardinality;
        keys.item = &item;
        return keys;
    }

    /// Copies a tile's values while its keys are multiplied, and the next tile's keys while the values are multiplied.
    KVSCOPE_DEVICE void attend(Block& block, Shared& shared) const {
        Threads threads;
        const KeysOfRows<T>& keys = shared.of_rows;
        begin(block, threads, shared);
        int key = keys.begin;
        block.registers([&](int t) {
            copy_queries(t, shared);
            copy_tile(t, keys, keys.k, key, shared.keys);
        });
        KVSCOPE_UNROLL_BY(1)
        for (; key < keys.end; key += tile_keys) {
            block.threads([](int) { wait_for_copies<0>(); });
            block.anew([&](int t) {
                if (keys.cardinality) read_counts(t, key, shared);
                copy_tile(t, keys, keys.v, key, shared.values);
            });
            multiply_keys(block, threads, shared);
            block.threads([](int) { wait_for_copies<0>(); });
            block.anew([&](int t) { copy_tile(t, keys, keys.k, key + tile_keys, shared.keys); });
            find_largest(block, key, threads, shared);
            add_values(block, threads, shared);
        }
        block.registers([](int) { wait_for_copies<0>(); });
        finish(block, threads, shared);
    }

    KVSCOPE_DEVICE void begin(Block& block, Threads& threads, Shared& shared) const {
        static_assert(tile_rows <= Block::block_threads && tile_keys <= Block::block_threads);
        block.threads([&](int t) {
            if (t < tile_rows) shared.rows[t] = row(t);
            if (t == 0) shared.of_rows = keys_of_rows();
            if (t < tile_keys) shared.counts[t] = 1;
            Thread& own = threads[t];
            KVSCOPE_UNROLL
            for (int piece = 0; piece < n_pieces; ++piece) {
                KVSCOPE_UNROLL
                for (int n = 0; n < D / 8; ++n) own.out[piece][n] = {};
            }
            KVSCOPE_UNROLL
            for (int i = 0; i < 2 * n_pieces; ++i) {
                own.largest[i] = lowest_maximum;
                own.total[i] = 0;
            }
        });
    }

    KVSCOPE_DEVICE void copy_queries(int t, Shared& shared) const {
        constexpr int n_loads = D / elements_per_load<T>;
        const T* const q = static_cast<const T*>(problem.q);
        const int64_t apart = problem.q_token_stride;
        const int d = problem.head_dim;
        KVSCOPE_UNROLL_BY(4)
        for (int i = t; i < tile_rows * n_loads; i += Block::block_threads) {
            const PrefillRow& row = shared.rows[i / n_loads];
            const int c = i % n_loads * elements_per_load<T>;
            begin_copy(shared.queries + i / n_loads * row_stride + c, q + row.query * apart + int64_t{row.head} * d + c,
                       row.high >= 0 && c < d);
        }
    }

    /// Starts to copy rows of k or v from `key` on. Copies nothing after the last key.
    KVSCOPE_DEVICE static void copy_tile(int t, const KeysOfRows<T>& keys, const T* rows, int key, T* to) {
        const int d = keys.head_dim;
        if (key < keys.end)
            Product::template copy_rows<tile_keys>(t, d, to, rows + int64_t{key} * d, d, keys.end - key);
        commit_copies();
    }

    KVSCOPE_DEVICE static void read_counts(int t, int key, Shared& shared) {
        const KeysOfRows<T>& keys = shared.of_rows;
        if (t < tile_keys) shared.counts[t] = key + t < keys.end ? keys.cardinality[key + t] : 1.0f;
    }

    KVSCOPE_DEVICE static void multiply_keys(Block& block, Threads& threads, Shared& shared) {
        const auto scores = [&](int t) -> typename Product::Scores& { return threads[t].scores; };
        Product::clear(block, scores);
        if constexpr (Shape::is_bf16) {
            Own<Block, typename Product::Fragments> a;
            const auto fragments = [&](int t) -> typename Product::Fragments& { return a[t]; };
            Product::multiply_bf16(
                block,
                [&](int c) {
                    Product::load_rows(block, shared.queries, c, fragments);
                    return fragments;
                },
                [&](int t) { return Product::begin_of(t, shared.keys); }, 0, tile_keys, scores);
        } else {
            Product::multiply_f32(block, shared.queries, shared.keys, scores);
        }
    }

    /// Masks invisible keys and rescales the earlier sums to the new largest logit.
    KVSCOPE_DEVICE static void find_largest(Block& block, int key, Threads& threads, Shared& shared) {
        const KeysOfRows<T>& keys = shared.of_rows;
        if (key < keys.first_full || key + tile_keys - 1 > keys.last_full)
            block.anew([&](int t) { mask(t, key, shared, threads[t]); });
        Own<Block, OfRows> largest;
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < 2 * n_pieces; ++i) largest[t][i] = unseen_logit;
            Product::each(threads[t].scores,
                          [&](float score, int i, int) { largest[t][i] = quick_max_of_two(largest[t][i], score); });
        });
        block.join_lanes(largest, 1, Most{});
        block.join_lanes(largest, 2, Most{});
        Own<Block, int> grew;
        block.ask_warps(grew, [&](int t) {
            bool any = false;
            KVSCOPE_UNROLL
            for (int i = 0; i < 2 * n_pieces; ++i) {
                largest[t][i] = multiply_rounded(largest[t][i], keys.scale);
                any |= largest[t][i] > threads[t].largest[i];
            }
            return any;
        });
        block.registers([&](int t) {
            if (grew[t]) rescale(largest[t], threads[t]);  // for other rows the factor is 1
        });
    }

    KVSCOPE_DEVICE static void mask(int t, int key, const Shared& shared, Thread& own) {
        Numbers<int, 2 * n_pieces> low, high;
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * n_pieces; ++i) {
            low[i] = shared.rows[Product::row_of(t, i)].low;
            high[i] = shared.rows[Product::row_of(t, i)].high;
        }
        const int first = key + Product::first_column_of(t);
        Product::each(own.scores, [&](float& score, int i, int column) {
            if (first + column < low[i] || first + column > high[i]) score = unseen_logit;
        });
    }

    KVSCOPE_DEVICE static void rescale(const OfRows& largest, Thread& own) {
        OfRows correction;
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * n_pieces; ++i) {
            const float greater = quick_max_of_two(own.largest[i], largest[i]);
            correction[i] = quick_exp2_of(own.largest[i] - greater);
            own.largest[i] = greater;
            own.total[i] *= correction[i];
        }
        KVSCOPE_UNROLL
        for (int piece = 0; piece < n_pieces; ++piece) {
            KVSCOPE_UNROLL
            for (int n = 0; n < D / 8; ++n) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 4; ++e) own.out[piece][n][e] *= correction[2 * piece + e / 2];
            }
        }
    }

    KVSCOPE_DEVICE static void weigh(int t, int key, Thread& own, const Shared& shared) {
        const float scale = shared.of_rows.scale;
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * n_pieces; ++i) {
            KVSCOPE_UNROLL
            for (int column = key; column < key + 16; column += column % 2 == 0 ? 1 : 7) {
                float& score = own.scores[i / 2][column / 8][i % 2 * 2 + column % 2];
                score = quick_exp2_of(multiply_add(score, scale, -own.largest[i]));
                const float count = shared.counts[Product::first_column_of(t) + column];
                own.total[i] = multiply_add(score, count, own.total[i]);
            }
        }
    }

    /// In bf16, computes the weights of some keys while the values of the previous keys are multiplied.
    KVSCOPE_DEVICE static void add_values(Block& block, Threads& threads, Shared& shared) {
        if constexpr (Shape::is_bf16) {
            add_values_bf16(block, threads, shared);
        } else {
            block.threads([&](int t) {
                Thread& own = threads[t];
                KVSCOPE_UNROLL
                for (int key = 0; key < tile_keys; key += 16) weigh(t, key, own, shared);
                Product::each(own.scores, [&](float weight, int i, int column) {
                    const int key = Product::first_column_of(t) + column;
                    shared.weights[Product::row_of(t, i) * (tile_keys + 4) + key] = weight;
                });
            });
            block.registers([&](int t) { add_values_f32(t, threads[t], shared); });
        }
    }

    KVSCOPE_DEVICE static void add_values_bf16(Block& block, Threads& threads, const Shared& shared) {
        Own<Block, typename Product::Fragments> a;
        Own<Block, Four> b;
        KVSCOPE_UNROLL
        for (int key = 0; key < tile_keys; key += 16) {
            block.anew([&](int t) {
                weigh(t, key, threads[t], shared);
                KVSCOPE_UNROLL
                for (int piece = 0; piece < n_pieces; ++piece) {
                    KVSCOPE_UNROLL
                    for (int i = 0; i < 4; ++i) {
                        const auto& weights = threads[t].scores[piece][key / 8 + i / 2];
                        a[t][piece][i] = pack_bf16_pair(weights[i % 2 * 2], weights[i % 2 * 2 + 1]);
                    }
                }
            });
            KVSCOPE_UNROLL
            for (int n = 0; n < D / 8; n += 2) {
                block.template load_matrices<true>(
                    [&](int t) -> Four& { return b[t]; },
                    [&](int t) { return shared.values + (key + t % 16) * row_stride + n * 8 + t % 32 / 16 * 8; });
                KVSCOPE_UNROLL
                for (int half = 0; half < 2; ++half) {
                    KVSCOPE_UNROLL
                    for (int piece = 0; piece < n_pieces; ++piece)
                        block.multiply([&](int t) -> Numbers<float, 4>& { return threads[t].out[piece][n + half]; },
                                       [&](int t) -> const Four& { return a[t][piece]; },
                                       [&](int t) { return b[t].at + 2 * half; });
                }
            }
        }
    }

    KVSCOPE_DEVICE static void add_values_f32(int t, Thread& own, const Shared& shared) {
        const float* weights = shared.weights + Product::row_of(t, 0) * (tile_keys + 4);
        KVSCOPE_UNROLL_BY(1)
        for (int key = 0; key < tile_keys; ++key) {
            const float upper = weights[key], lower = weights[8 * (tile_keys + 4) + key];
            const T* row = shared.values + key * row_stride + 2 * (t % 4);
            KVSCOPE_UNROLL
            for (int n = 0; n < D / 8; ++n) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 2; ++e) {
                    const float value = to_float(row[n * 8 + e]);
                    own.out[0][n][e] = multiply_add(upper, value, own.out[0][n][e]);
                    own.out[0][n][2 + e] = multiply_add(lower, value, own.out[0][n][2 + e]);
                }
            }
        }
    }

    KVSCOPE_DEVICE static void finish(Block& block, Threads& threads, const Shared& shared) {
        const PrefillItem& item = *shared.of_rows.item;
        const PrefillAttention& problem = item.problem;
        Own<Block, OfRows> total;
        block.registers([&](int t) { total[t] = threads[t].total; });
        block.join_lanes(total, 1, Add{});
        block.join_lanes(total, 2, Add{});
        T* const out = static_cast<T*>(problem.out);
        Softmax* const sums = item.sums;
        const int64_t n_queries = problem.n_queries, apart = problem.out_token_stride;
        const int d = problem.head_dim;
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < 2 * n_pieces; ++i) {
                const PrefillRow& row = shared.rows[Product::row_of(t, i)];
                if (row.high < 0) continue;
                const float inverse = reciprocal_or_zero(total[t][i]);
                if (sums && t % 4 == 0) sums[row.head * n_queries + row.query] = {threads[t].largest[i], inverse};
                if (!out) continue;
                T* const to = out + row.query * apart + int64_t{row.head} * d + 2 * (t % 4);
                KVSCOPE_UNROLL
                for (int n = 0; n < D / 8; ++n) {
                    const Numbers<float, 4>& own = threads[t].out[i / 2][n];
                    if (n * 8 < d) store_pair(to + n * 8, own[i % 2 * 2] * inverse, own[i % 2 * 2 + 1] * inverse);
                }
            }
        });
    }

    KVSCOPE_DEVICE static void store_pair(float* to, float low, float high) {
        to[0] = low;
        to[1] = high;
    }
    KVSCOPE_DEVICE static void store_pair(bf16* to, float low, float high) {
        const uint32_t pair = pack_bf16_pair(low, high);
#ifdef __CUDACC__
        *reinterpret_cast<uint32_t*>(to) = pair;
#else
        std::memcpy(static_cast<void*>(to), &pair, sizeof pair);
#endif
    }
};

}  // namespace kvscope::kernels::cuda
