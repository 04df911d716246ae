#pragma once

#include <limits>

#include "kernels/attention_prefill.h"
#include "kernels/cuda/tile.h"

/// Prefill attention as blocks work on it. A block's rows are (query, head of the KV head's group), queries slowest; it
/// goes through the keys in tiles that begin at multiples of their size, whatever the chunk. A thread holds of each 16
/// x 8 piece of a product the rows lane / 4 and lane / 4 + 8, columns 2 (lane % 4) and the next: mma.m16n8k16's layout,
/// kept for f32, too.
namespace kvscope::kernels::cuda {

inline constexpr int kPrefillMostDim = 256;

template <class T, int D>
struct PrefillShape {
    static constexpr bool kIsBf16 = sizeof(T) == 2;
    static constexpr int kWarps = !kIsBf16 && D > 128 ? 2 : 4;
    static constexpr int kThreads = 32 * kWarps;
    /// Pieces of 16 rows of a warp. What it reads of keys and values serves all of them: with one the tensor cores wait
    /// for shared memory; for more than two there are no registers.
    static constexpr int kPieces = kIsBf16 && D <= 128 ? 2 : 1;
    static constexpr int kRows = 16 * kPieces * kWarps;
    static constexpr int kKeys = kIsBf16 ? (D > 128 ? 32 : 64) : (D > 128 ? 16 : 32);
    static constexpr int kStride = D + kPerLoad<T>;  ///< of rows in shared memory: apart by 4 banks
    /// Blocks that a multiprocessor shall have registers for, so that some multiply while others weigh.
    static constexpr int kBlocks = kIsBf16 && D <= 128 ? (D == 64 ? 3 : 2) : 1;
    static constexpr int kColumnBlocks = kIsBf16 && D <= 128 ? 3 : 1;  ///< of those that sum up columns
};

/// A row of a block, and the keys that it sees: of a row that does not exist none, and high is below 0.
struct PrefillRow {
    int query, head;
    int low, high;
};

/// A problem, with first_keys in device memory, and its blocks: for each KV head those of n_tiles tiles of rows.
struct PrefillItem {
    PrefillAttention problem;
    int64_t n_tiles;
    int64_t first_block;
    Softmax* sums;  ///< (H, n_queries) largest logit and 1 / total; nullptr: nobody asks
};

/// The column sums of a problem: a block for each head and tile of keys.
struct ColumnItem {
    int64_t item;
    int64_t n_tiles;
    int64_t first_block;
};

/// What a block needs for each tile of keys. In shared memory: all registers are taken.
template <class T>
struct KeysOfRows {
    const T *k, *v;
    int begin, end, head_dim;
    int first_full, last_full;  ///< of those that all rows see
    float scale;                ///< to logits in powers of two
    const float* cardinality;
    const PrefillItem* item;
};

template <class T, int D>
struct PrefillShared {
    using Shape = PrefillShape<T, D>;
    alignas(16) T queries[Shape::kRows * Shape::kStride];
    alignas(16) T keys[Shape::kKeys * Shape::kStride];
    alignas(16) T values[Shape::kKeys * Shape::kStride];
    alignas(16) float weights[Shape::kIsBf16 ? 4 : Shape::kRows * (Shape::kKeys + 4)];
    float counts[Shape::kKeys];
    PrefillRow rows[Shape::kRows];
    KeysOfRows<T> of_rows;
};

/// What a block that sums up columns needs for each tile of queries. In shared memory, as KeysOfRows.
template <class T>
struct QueriesOfKeys {
    const PrefillAttention* problem;
    const T* q;              ///< of this head, as is the next
    const Softmax* softmax;  ///< of each query
    int64_t apart;           ///< elements from one query to the next
    int head, first_key, n_keys, n_queries, head_dim;
    int begin, end;            ///< queries that see any of the keys
    int first_full, end_full;  ///< those that see them all
    float scale;               ///< to logits in powers of two
};

/// While one tile of queries is worked on the next one is copied. In bf16 the keys, which go into registers, lie where
/// queries do afterwards.
template <class T, int D>
struct ColumnShared {
    using Shape = PrefillShape<T, D>;
    static constexpr int kQueries = Shape::kKeys * Shape::kStride;
    static constexpr int kKeys = Shape::kRows * Shape::kStride;
    static_assert(!Shape::kIsBf16 || kKeys <= 2 * kQueries);
    alignas(16) T queries[2 * kQueries];
    alignas(16) T own_keys[Shape::kIsBf16 ? 8 : kKeys];
    alignas(16) Softmax softmax[2 * Shape::kKeys];
    double sums[2 * Shape::kPieces][Shape::kThreads];  ///< each thread's own: there are no registers for them
    QueriesOfKeys<T> of_keys;
    int low[2 * Shape::kKeys];  ///< the first key that a query sees, where that matters
    KVSCOPE_DEVICE T* keys() { return Shape::kIsBf16 ? queries : own_keys; }
};

/// Score of a key that a query does not see: as a logit, too, whatever the scale, with a weight of 0.
inline constexpr float kUnseen = -std::numeric_limits<float>::infinity();

/// The first key that a query sees.
KVSCOPE_DEVICE int64_t first_key_of(const PrefillAttention& p, int64_t query) {
    if (p.first_keys) return p.first_keys[query];
    return p.sliding_window > 0 ? most<int64_t>(0, p.q_begin + query - p.sliding_window + 1) : 0;
}

/// Of the queries, whose first keys never fall, the first one that does not see the keys before `key`.
KVSCOPE_DEVICE int64_t first_query_from(const PrefillAttention& p, int64_t key) {
    if (!p.first_keys && p.sliding_window <= 0) return key > 0 ? p.n_queries : 0;
    int64_t low = 0, high = p.n_queries;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (first_key_of(p, middle) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/// What both kernels share: products of a block's rows, each warp's on their own, and the rows of a tile.
template <class Block, class T, int D>
struct PrefillProduct {
    using Shape = PrefillShape<T, D>;
    static constexpr int kPieces = Shape::kPieces, kStride = Shape::kStride;
    static constexpr int kColumns = Shape::kKeys;  ///< of a product
    static constexpr int kPer = kPerLoad<T>;
    using Scores = Numbers<Numbers<Numbers<float, 4>, kColumns / 8>, kPieces>;
    using Fragments = Numbers<Four, kPieces>;  ///< 16 elements of a warp's rows

    /// Row i of a thread's 2 * kPieces.
    KVSCOPE_DEVICE static int row_of(int t, int i) { return (t / 32 * kPieces + i / 2) * 16 + t % 32 / 4 + i % 2 * 8; }

    /// Begins to copy `left` rows of d elements, `apart` elements from each other, into shared memory; zeros beside and
    /// below them.
    template <int n_rows>
    KVSCOPE_DEVICE static void copy_rows(int t, int d, T* to, const T* from, int64_t apart, int left) {
        constexpr int kLoads = D / kPer;
        static_assert(n_rows * kLoads % Block::kThreads == 0);
        if constexpr (Block::kThreads % kLoads == 0) {
            constexpr int kStep = Block::kThreads / kLoads;
            const int first = t / kLoads, c = t % kLoads * kPer;
            const T* source = from + first * apart + c;
            if (c >= d) left = 0;
            KVSCOPE_UNROLL
            for (int row = 0; row < n_rows; row += kStep) {
                begin_copy(to + (row + first) * kStride + c, source, row + first < left);
                source += kStep * apart;
            }
        } else {
            KVSCOPE_UNROLL
            for (int first = 0; first < n_rows * kLoads; first += Block::kThreads) {
                const int row = (first + t) / kLoads, c = (first + t) % kLoads * kPer;
                begin_copy(to + row * kStride + c, from + row * apart + c, row < left && c < d);
            }
        }
    }

    /// Where a thread's part of a tile's columns begins.
    KVSCOPE_DEVICE static const T* begin_of(int t, const T* columns) {
        return columns + (t % 32 / 16 * 8 + t % 8) * kStride + t / 8 % 2 * 8;
    }

    /// scores += rows columns^T, unscaled, of the columns from `begin` to `end`. fragments(c) brings elements c ... c +
    /// 15 of the rows and says where they are; columns(t) is begin_of.
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
                                                    [&](int t) { return columns(t) + n * 8 * kStride + c; });
                KVSCOPE_UNROLL
                for (int half = 0; half < 2; ++half) {
                    KVSCOPE_UNROLL
                    for (int piece = 0; piece < kPieces; ++piece)
                        block.multiply([&](int t) -> Numbers<float, 4>& { return scores(t)[piece][n + half]; },
                                       [&](int t) -> const Four& { return a(t)[piece]; },
                                       [&](int t) { return b[t].at + 2 * half; });
                }
            }
        }
    }

    /// Elements c ... c + 15 of a warp's rows.
    template <class Fragment>
    KVSCOPE_DEVICE static void load_rows(Block& block, const T* rows, int c, const Fragment& to) {
        KVSCOPE_UNROLL
        for (int piece = 0; piece < kPieces; ++piece)
            block.template load_matrices<false>([&](int t) -> Four& { return to(t)[piece]; },
                                                [&](int t) {
                                                    const int row = (t / 32 * kPieces + piece) * 16 + t % 16;
                                                    return rows + row * kStride + c + t % 32 / 16 * 8;
                                                });
    }

    template <class Score>
    KVSCOPE_DEVICE static void multiply_f32(Block& block, const T* rows, const T* columns, const Score& scores) {
        block.registers([&](int t) {
            const int lane = t % 32;
            const T* own = rows + (t / 32 * 16 + lane / 4) * kStride;
            KVSCOPE_UNROLL_BY(1)
            for (int c = 0; c < D; c += 4) {
                const Loaded<T> upper = load_aligned(own + c), lower = load_aligned(own + 8 * kStride + c);
                KVSCOPE_UNROLL
                for (int n = 0; n < kColumns / 8; ++n) {
                    KVSCOPE_UNROLL
                    for (int e = 0; e < 2; ++e) {
                        const Loaded<T> column = load_aligned(columns + (n * 8 + 2 * (lane % 4) + e) * kStride + c);
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

    /// f(score, row, column) of all that a thread holds: its row i of 2 * kPieces, and the column of the product less
    /// that of its first one.
    template <class F>
    KVSCOPE_DEVICE static void each(Scores& scores, const F& f) {
        KVSCOPE_UNROLL
        for (int piece = 0; piece < kPieces; ++piece) {
            KVSCOPE_UNROLL
            for (int n = 0; n < kColumns / 8; ++n) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 4; ++e) f(scores[piece][n][e], 2 * piece + e / 2, n * 8 + e % 2);
            }
        }
    }
    KVSCOPE_DEVICE static int first_column_of(int t) { return 2 * (t % 4); }
};

template <class Block, class T, int D>
struct PrefillTile {
    using Product = PrefillProduct<Block, T, D>;
    using Shape = PrefillShape<T, D>;
    using Shared = PrefillShared<T, D>;
    static constexpr int kKeys = Shape::kKeys, kRows = Shape::kRows, kStride = Shape::kStride;
    static constexpr int kPieces = Shape::kPieces;
    using OfRows = Numbers<float, 2 * kPieces>;  ///< of a thread's

    struct Thread {
        Numbers<Numbers<Numbers<float, 4>, D / 8>, kPieces> out;
        typename Product::Scores scores;
        OfRows largest, total;  ///< logit in powers of two, and the sum of weights
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
        const int64_t first = (item.n_tiles - 1 - block_index / problem.n_kv_heads) * kRows;  // the longest first
        const int at = static_cast<int>(first % group) + i;
        const int query = static_cast<int>(first / group) + at / group, head = kv_head() * group + at % group;
        if (query >= problem.n_queries) return {query, head, 0, -1};
        const auto q_begin = static_cast<int>(problem.q_begin);
        return {query, head, static_cast<int>(first_key_of(problem, query)), q_begin + query};
    }

    KVSCOPE_DEVICE KeysOfRows<T> keys_of_rows() const {
        KeysOfRows<T> keys;
        const PrefillRow first = row(0);
        const int last = least(static_cast<int>(problem.n_queries) - 1, row(kRows - 1).query);
        keys.k = static_cast<const T*>(problem.k) + kv_head() * problem.kv_head_stride;
        keys.v = static_cast<const T*>(problem.v) + kv_head() * problem.kv_head_stride;
        keys.begin = first.low / kKeys * kKeys;
        keys.end = static_cast<int>(problem.q_begin) + last + 1;
        keys.head_dim = problem.head_dim;
        keys.first_full = static_cast<int>(first_key_of(problem, last));
        keys.last_full = first.high;
        keys.scale = problem.scale * kLog2E;
        keys.cardinality = problem.cardinality;
        keys.item = &item;
        return keys;
    }

    /// A tile's values are copied while its keys are multiplied, and the next one's keys while its values are.
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
        for (; key < keys.end; key += kKeys) {
            block.threads([](int) { wait_for_copies<0>(); });
            block.anew([&](int t) {
                if (keys.cardinality) read_counts(t, key, shared);
                copy_tile(t, keys, keys.v, key, shared.values);
            });
            multiply_keys(block, threads, shared);
            block.threads([](int) { wait_for_copies<0>(); });
            block.anew([&](int t) { copy_tile(t, keys, keys.k, key + kKeys, shared.keys); });
            find_largest(block, key, threads, shared);
            add_values(block, threads, shared);
        }
        block.registers([](int) { wait_for_copies<0>(); });
        finish(block, threads, shared);
    }

    KVSCOPE_DEVICE void begin(Block& block, Threads& threads, Shared& shared) const {
        static_assert(kRows <= Block::kThreads && kKeys <= Block::kThreads);
        block.threads([&](int t) {
            if (t < kRows) shared.rows[t] = row(t);
            if (t == 0) shared.of_rows = keys_of_rows();
            if (t < kKeys) shared.counts[t] = 1;
            Thread& own = threads[t];
            KVSCOPE_UNROLL
            for (int piece = 0; piece < kPieces; ++piece) {
                KVSCOPE_UNROLL
                for (int n = 0; n < D / 8; ++n) own.out[piece][n] = {};
            }
            KVSCOPE_UNROLL
            for (int i = 0; i < 2 * kPieces; ++i) {
                own.largest[i] = kLowest;
                own.total[i] = 0;
            }
        });
    }

    KVSCOPE_DEVICE void copy_queries(int t, Shared& shared) const {
        constexpr int kLoads = D / kPerLoad<T>;
        const T* const q = static_cast<const T*>(problem.q);
        const int64_t apart = problem.q_token_stride;
        const int d = problem.head_dim;
        KVSCOPE_UNROLL_BY(4)
        for (int i = t; i < kRows * kLoads; i += Block::kThreads) {
            const PrefillRow& row = shared.rows[i / kLoads];
            const int c = i % kLoads * kPerLoad<T>;
            begin_copy(shared.queries + i / kLoads * kStride + c, q + row.query * apart + int64_t{row.head} * d + c,
                       row.high >= 0 && c < d);
        }
    }

    /// Begins to copy the rows from `key` on of k or v; nothing behind the last.
    KVSCOPE_DEVICE static void copy_tile(int t, const KeysOfRows<T>& keys, const T* rows, int key, T* to) {
        const int d = keys.head_dim;
        if (key < keys.end) Product::template copy_rows<kKeys>(t, d, to, rows + int64_t{key} * d, d, keys.end - key);
        commit_copies();
    }

    KVSCOPE_DEVICE static void read_counts(int t, int key, Shared& shared) {
        const KeysOfRows<T>& keys = shared.of_rows;
        if (t < kKeys) shared.counts[t] = key + t < keys.end ? keys.cardinality[key + t] : 1.0f;
    }

    KVSCOPE_DEVICE static void multiply_keys(Block& block, Threads& threads, Shared& shared) {
        const auto scores = [&](int t) -> typename Product::Scores& { return threads[t].scores; };
        Product::clear(block, scores);
        if constexpr (Shape::kIsBf16) {
            Own<Block, typename Product::Fragments> a;
            const auto fragments = [&](int t) -> typename Product::Fragments& { return a[t]; };
            Product::multiply_bf16(
                block,
                [&](int c) {
                    Product::load_rows(block, shared.queries, c, fragments);
                    return fragments;
                },
                [&](int t) { return Product::begin_of(t, shared.keys); }, 0, kKeys, scores);
        } else {
            Product::multiply_f32(block, shared.queries, shared.keys, scores);
        }
    }

    /// Leaves the scores of keys that are seen, and brings what was summed before to the scale of the largest so far.
    KVSCOPE_DEVICE static void find_largest(Block& block, int key, Threads& threads, Shared& shared) {
        const KeysOfRows<T>& keys = shared.of_rows;
        if (key < keys.first_full || key + kKeys - 1 > keys.last_full)
            block.anew([&](int t) { mask(t, key, shared, threads[t]); });
        Own<Block, OfRows> largest;
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < 2 * kPieces; ++i) largest[t][i] = kUnseen;
            Product::each(threads[t].scores,
                          [&](float score, int i, int) { largest[t][i] = quick_most(largest[t][i], score); });
        });
        block.join_lanes(largest, 1, Most{});
        block.join_lanes(largest, 2, Most{});
        Own<Block, int> grew;
        block.ask_warps(grew, [&](int t) {
            bool any = false;
            KVSCOPE_UNROLL
            for (int i = 0; i < 2 * kPieces; ++i) {
                largest[t][i] = product_of(largest[t][i], keys.scale);
                any |= largest[t][i] > threads[t].largest[i];
            }
            return any;
        });
        block.registers([&](int t) {
            if (grew[t]) rescale(largest[t], threads[t]);  // elsewhere by 1, which changes nothing
        });
    }

    /// Leaves the scores of keys that a row sees, all others kUnseen.
    KVSCOPE_DEVICE static void mask(int t, int key, const Shared& shared, Thread& own) {
        Numbers<int, 2 * kPieces> low, high;
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * kPieces; ++i) {
            low[i] = shared.rows[Product::row_of(t, i)].low;
            high[i] = shared.rows[Product::row_of(t, i)].high;
        }
        const int first = key + Product::first_column_of(t);
        Product::each(own.scores, [&](float& score, int i, int column) {
            if (first + column < low[i] || first + column > high[i]) score = kUnseen;
        });
    }

    KVSCOPE_DEVICE static void rescale(const OfRows& largest, Thread& own) {
        OfRows correction;
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * kPieces; ++i) {
            const float greater = quick_most(own.largest[i], largest[i]);
            correction[i] = quick_power_of_two(own.largest[i] - greater);
            own.largest[i] = greater;
            own.total[i] *= correction[i];
        }
        KVSCOPE_UNROLL
        for (int piece = 0; piece < kPieces; ++piece) {
            KVSCOPE_UNROLL
            for (int n = 0; n < D / 8; ++n) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 4; ++e) own.out[piece][n][e] *= correction[2 * piece + e / 2];
            }
        }
    }

    /// Of 16 keys the scores to weights 2^(logit - largest).
    KVSCOPE_DEVICE static void weigh(int t, int key, Thread& own, const Shared& shared) {
        const float scale = shared.of_rows.scale;
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * kPieces; ++i) {
            KVSCOPE_UNROLL
            for (int column = key; column < key + 16; column += column % 2 == 0 ? 1 : 7) {
                float& score = own.scores[i / 2][column / 8][i % 2 * 2 + column % 2];
                score = quick_power_of_two(multiply_add(score, scale, -own.largest[i]));
                const float count = shared.counts[Product::first_column_of(t) + column];
                own.total[i] = multiply_add(score, count, own.total[i]);
            }
        }
    }

    /// In bf16 the weights of some keys are found while the values of those before them are multiplied.
    KVSCOPE_DEVICE static void add_values(Block& block, Threads& threads, Shared& shared) {
        if constexpr (Shape::kIsBf16) {
            add_values_bf16(block, threads, shared);
        } else {
            block.threads([&](int t) {
                Thread& own = threads[t];
                KVSCOPE_UNROLL
                for (int key = 0; key < kKeys; key += 16) weigh(t, key, own, shared);
                Product::each(own.scores, [&](float weight, int i, int column) {
                    const int key = Product::first_column_of(t) + column;
                    shared.weights[Product::row_of(t, i) * (kKeys + 4) + key] = weight;
                });
            });
            block.registers([&](int t) { add_values_f32(t, threads[t], shared); });
        }
    }

    KVSCOPE_DEVICE static void add_values_bf16(Block& block, Threads& threads, const Shared& shared) {
        Own<Block, typename Product::Fragments> a;
        Own<Block, Four> b;
        KVSCOPE_UNROLL
        for (int key = 0; key < kKeys; key += 16) {
            block.anew([&](int t) {
                weigh(t, key, threads[t], shared);
                KVSCOPE_UNROLL
                for (int piece = 0; piece < kPieces; ++piece) {
                    KVSCOPE_UNROLL
                    for (int i = 0; i < 4; ++i) {
                        const auto& weights = threads[t].scores[piece][key / 8 + i / 2];
                        a[t][piece][i] = pair_of(weights[i % 2 * 2], weights[i % 2 * 2 + 1]);
                    }
                }
            });
            KVSCOPE_UNROLL
            for (int n = 0; n < D / 8; n += 2) {
                block.template load_matrices<true>(
                    [&](int t) -> Four& { return b[t]; },
                    [&](int t) { return shared.values + (key + t % 16) * kStride + n * 8 + t % 32 / 16 * 8; });
                KVSCOPE_UNROLL
                for (int half = 0; half < 2; ++half) {
                    KVSCOPE_UNROLL
                    for (int piece = 0; piece < kPieces; ++piece)
                        block.multiply([&](int t) -> Numbers<float, 4>& { return threads[t].out[piece][n + half]; },
                                       [&](int t) -> const Four& { return a[t][piece]; },
                                       [&](int t) { return b[t].at + 2 * half; });
                }
            }
        }
    }

    KVSCOPE_DEVICE static void add_values_f32(int t, Thread& own, const Shared& shared) {
        const float* weights = shared.weights + Product::row_of(t, 0) * (kKeys + 4);
        KVSCOPE_UNROLL_BY(1)
        for (int key = 0; key < kKeys; ++key) {
            const float upper = weights[key], lower = weights[8 * (kKeys + 4) + key];
            const T* row = shared.values + key * kStride + 2 * (t % 4);
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
            for (int i = 0; i < 2 * kPieces; ++i) {
                const PrefillRow& row = shared.rows[Product::row_of(t, i)];
                if (row.high < 0) continue;
                const float inverse = inverse_of(total[t][i]);
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
        const uint32_t pair = pair_of(low, high);
#ifdef __CUDACC__
        *reinterpret_cast<uint32_t*>(to) = pair;
#else
        std::memcpy(static_cast<void*>(to), &pair, sizeof pair);
#endif
    }
};

/// The weights of a tile of keys, summed over the chunk's queries of one head in the order of their tiles. The product
/// is that of PrefillTile turned round: the block's rows are keys, which in bf16 stay in registers, and queries pass
/// by.
template <class Block, class T, int D>
struct ColumnTile {
    using Product = PrefillProduct<Block, T, D>;
    using Fragments = typename Product::Fragments;
    using Shape = PrefillShape<T, D>;
    using Shared = ColumnShared<T, D>;
    static constexpr int kKeys = Shape::kRows, kQueries = Shape::kKeys;
    static constexpr int kOwn = 2 * Shape::kPieces;  ///< keys of a thread

    struct Thread {
        typename Product::Scores scores;
        Numbers<Fragments, Shape::kIsBf16 ? D / 16 : 1> keys;
        Numbers<float, kOwn> few;
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
        of.first_key = static_cast<int>(at % columns.n_tiles) * kKeys;
        of.n_queries = static_cast<int>(p.n_queries);
        of.n_keys = least(kKeys, q_begin + of.n_queries - of.first_key);
        of.head_dim = p.head_dim;
        of.apart = p.q_token_stride;
        of.q = static_cast<const T*>(p.q) + int64_t{of.head} * p.head_dim;
        of.softmax = item.sums + of.head * p.n_queries;
        of.scale = p.scale * kLog2E;
        of.begin = most<int>(0, of.first_key - q_begin) / kQueries * kQueries;
        of.end = static_cast<int>(first_query_from(p, of.first_key + of.n_keys));
        of.first_full = of.first_key + of.n_keys - 1 - q_begin;
        of.end_full = static_cast<int>(first_query_from(p, of.first_key + 1));
        return of;
    }

    KVSCOPE_DEVICE void add(Block& block, Shared& shared) const {
        const QueriesOfKeys<T>& of = shared.of_keys;
        Threads threads;
        block.threads([&](int t) {
            if (t == 0) shared.of_keys = queries_of();
            KVSCOPE_UNROLL
            for (int i = 0; i < kOwn; ++i) shared.sums[i][t] = 0;
        });
        load_keys(block, threads, shared);
        int query = of.begin, stage = 0;
        block.registers([&](int t) { copy_queries(t, query, stage, shared); });
        KVSCOPE_UNROLL_BY(1)
        for (; query < of.end; query += kQueries, stage = 1 - stage) {
            block.threads([](int) { wait_for_copies<0>(); });
            block.anew([&](int t) { copy_queries(t, query + kQueries, 1 - stage, shared); });
            if (query < of.first_full || least(query + kQueries, of.n_queries) > of.end_full)
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
            Product::template copy_rows<kKeys>(t, of.head_dim, shared.keys(), rows, of.head_dim, of.n_keys);
            commit_copies();
            wait_for_copies<0>();
        });
        if constexpr (Shape::kIsBf16) {
            KVSCOPE_UNROLL
            for (int c = 0; c < D; c += 16)
                Product::load_rows(block, shared.keys(), c,
                                   [&](int t) -> Fragments& { return threads[t].keys[c / 16]; });
            block.threads([](int) {});
        }
    }

    /// Of queries that do not exist zeros, their weights too; nothing behind the last that sees any key.
    KVSCOPE_DEVICE static void copy_queries(int t, int first, int stage, Shared& shared) {
        const QueriesOfKeys<T>& of = shared.of_keys;
        if (first < of.end) {
            Product::template copy_rows<kQueries>(t, of.head_dim, shared.queries + stage * Shared::kQueries,
                                                  of.q + first * of.apart, of.apart, of.n_queries - first);
            if (t < kQueries) {
                const int query = first + t, at = stage * kQueries + t;
                begin_copy<sizeof(Softmax)>(shared.softmax + at, of.softmax + query, query < of.n_queries);
                // Before end_full queries see the first of the keys, and the rest as well.
                const bool may_not = query >= of.end_full && query < of.n_queries;
                shared.low[at] = may_not ? static_cast<int>(first_key_of(*of.problem, query)) : 0;
            }
        }
        commit_copies();
    }

    /// The weights of a tile, in f32, to the sums. In bf16 those of some queries are found while others are multiplied.
    /// @tparam seen  all of the keys are, by all of the queries
    template <bool seen>
    KVSCOPE_DEVICE static void add_tile(Block& block, int query, int stage, Threads& threads, Shared& shared) {
        constexpr int kPart = Shape::kIsBf16 ? kQueries / 2 : kQueries;
        const auto scores = [&](int t) -> typename Product::Scores& { return threads[t].scores; };
        const T* queries = shared.queries + stage * Shared::kQueries;
        Own<Block, const T*> from;
        block.anew([&](int t) {
            from[t] = Product::begin_of(t, queries);
            threads[t].few = {};
        });
        Product::clear(block, scores);
        KVSCOPE_UNROLL
        for (int first = 0; first < kQueries; first += kPart) {
            if constexpr (Shape::kIsBf16)
                Product::multiply_bf16(
                    block,
                    [&](int c) { return [&threads, c](int t) -> Fragments& { return threads[t].keys[c / 16]; }; },
                    [&](int t) { return from[t]; }, first, first + kPart, scores);
            else
                Product::multiply_f32(block, shared.keys(), queries, scores);
            if constexpr (!seen)
                block.anew([&](int t) { mask(t, query, first, first + kPart, stage, shared, threads[t]); });
            block.anew([&](int t) {
                KVSCOPE_UNROLL
                for (int column = first; column < first + kPart; column += 8)
                    add_weights(t, column, shared.of_keys.scale, shared.softmax + stage * kQueries, threads[t]);
            });
        }
        block.anew([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < kOwn; ++i) shared.sums[i][t] += static_cast<double>(threads[t].few[i]);
        });
    }

    /// Leaves the scores of keys that the queries see, all others kUnseen.
    KVSCOPE_DEVICE static void mask(int t, int query, int begin, int end, int stage, const Shared& shared,
                                    Thread& own) {
        const QueriesOfKeys<T>& of = shared.of_keys;
        const int key = of.first_key + Product::row_of(t, 0), own_column = Product::first_column_of(t);
        const int apart = key - static_cast<int>(of.problem->q_begin) - query - own_column;
        KVSCOPE_UNROLL
        for (int column = begin; column < end; column += column % 2 == 0 ? 1 : 7) {
            const int low = shared.low[stage * kQueries + column + own_column];
            KVSCOPE_UNROLL
            for (int i = 0; i < kOwn; ++i) {
                const int row = Product::row_of(0, i);
                if (key + row < low || apart + row > column)
                    own.scores[i / 2][column / 8][i % 2 * 2 + column % 2] = kUnseen;
            }
        }
    }

    /// Logits are rounded as PrefillTile rounds them: the sums fit the largest logit.
    KVSCOPE_DEVICE static void add_weights(int t, int column, float scale, const Softmax* of_queries, Thread& own) {
        const Loaded<float> two =
            load_aligned(reinterpret_cast<const float*>(of_queries + column + Product::first_column_of(t)));
        KVSCOPE_UNROLL
        for (int i = 0; i < kOwn; ++i) {
            KVSCOPE_UNROLL
            for (int e = 0; e < 2; ++e) {
                const float score = own.scores[i / 2][column / 8][i % 2 * 2 + e];
                const float weight = quick_power_of_two(multiply_add(score, scale, -two[2 * e]));
                own.few[i] = multiply_add(weight, two[2 * e + 1], own.few[i]);
            }
        }
    }

    /// Adds up the lanes that hold other queries of the same keys.
    KVSCOPE_DEVICE static void write(Block& block, const Shared& shared) {
        const QueriesOfKeys<T>& of = shared.of_keys;
        const PrefillAttention& p = *of.problem;
        Own<Block, Numbers<double, kOwn>> sums;
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < kOwn; ++i) sums[t][i] = shared.sums[i][t];
        });
        block.join_lanes(sums, 1, Add{});
        block.join_lanes(sums, 2, Add{});
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < kOwn; ++i) {
                const int row = Product::row_of(t, i), key = of.first_key + row;
                if (t % 4 != 0 || row >= of.n_keys) continue;
                const double n = p.cardinality ? static_cast<double>(p.cardinality[key]) : 1.0;
                p.column_sums[of.head * p.column_stride + key] += sums[t][i] * n;
            }
        });
    }
};

}  // namespace kvscope::kernels::cuda
