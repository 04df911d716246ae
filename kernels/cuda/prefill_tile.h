#pragma once

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
    static constexpr int kBlocks = kIsBf16 && D <= 128 ? 2 : 1;
    static constexpr int kColumnBlocks = kIsBf16 && D <= 128 ? 2 : 1;  ///< of those that sum up columns
};

/// Keys that a row sees; none: high below low.
struct Seen {
    int low, high;
};

/// A problem, with first_keys in device memory, and its blocks: for each KV head those of n_tiles tiles of rows.
struct PrefillItem {
    PrefillAttention problem;
    int64_t n_tiles;
    int64_t first_block;
    Softmax* sums;  ///< (H, n_queries) the logit whose weight was 1 and 1 / total; nullptr: nobody asks
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
    float factor;
    const float* cardinality;
    const PrefillItem* item;
    int64_t block_index;
};

template <class T, int D>
struct PrefillShared {
    using Shape = PrefillShape<T, D>;
    alignas(16) T queries[Shape::kRows * Shape::kStride];
    alignas(16) T keys[Shape::kKeys * Shape::kStride];
    alignas(16) T values[Shape::kKeys * Shape::kStride];
    alignas(16) float weights[Shape::kIsBf16 ? 4 : Shape::kRows * (Shape::kKeys + 4)];
    float counts[Shape::kKeys];
    Seen seen[Shape::kRows];
    KeysOfRows<T> of_rows;
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
    KVSCOPE_DEVICE T* keys() { return Shape::kIsBf16 ? queries : own_keys; }
};

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

/// What scores are multiplied by to be logits in powers of two, as long as that leaves them in their order and kMasked
/// far below them. If not: 1, and PrefillProduct::multiply has multiplied them already.
KVSCOPE_DEVICE float factor_of(float scale) { return scale * kLog2E >= 1e-6f ? scale * kLog2E : 1.0f; }

/// What both kernels share: products of a block's rows, each warp's on their own, and the rows of a tile.
template <class Block, class T, int D>
struct PrefillProduct {
    using Shape = PrefillShape<T, D>;
    static constexpr int kPieces = Shape::kPieces, kStride = Shape::kStride;
    static constexpr int kColumns = Shape::kKeys;  ///< of a product
    static constexpr int kPer = kPerLoad<T>;
    using Scores = Numbers<Numbers<Numbers<float, 4>, kColumns / 8>, kPieces>;
    using Fragments = Numbers<Four, kPieces>;  ///< 16 columns of a warp's rows

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

    /// scores = rows columns^T, unscaled unless factor_of says otherwise. bf16: fragments(c) brings the rows' columns
    /// from c to c + 16 and says where they are.
    template <class Fragment, class Score>
    KVSCOPE_DEVICE static void multiply_bf16(Block& block, const Fragment& fragments, const T* columns,
                                             const Score& scores) {
        clear(block, scores);
        Own<Block, Four> b;
        KVSCOPE_UNROLL
        for (int c = 0; c < D; c += 16) {
            const auto a = fragments(c);
            KVSCOPE_UNROLL
            for (int n = 0; n < kColumns / 8; n += 2) {
                block.template load_matrices<false>([&](int t) -> Four& { return b[t]; },
                                                    [&](int t) {
                                                        const int row = n * 8 + t % 32 / 16 * 8 + t % 8;
                                                        return columns + row * kStride + c + t / 8 % 2 * 8;
                                                    });
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

    /// Columns c ... c + 15 of a warp's rows.
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
        clear(block, scores);
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

    /// Where factor_of is 1, the multiplication that it stands for.
    template <class Score>
    KVSCOPE_DEVICE static void scale_scores(Block& block, float scale, const Score& scores) {
        block.registers([&](int t) {
            each(scores(t), [&](float& score, int, int) { score = product_of(score, scale * kLog2E); });
        });
    }
};

template <class Block, class T, int D>
struct PrefillTile {
    using Product = PrefillProduct<Block, T, D>;
    using Shape = PrefillShape<T, D>;
    using Shared = PrefillShared<T, D>;
    static constexpr int kKeys = Shape::kKeys, kRows = Shape::kRows, kStride = Shape::kStride;
    static constexpr int kPieces = Shape::kPieces;
    using OfRows = Numbers<float, 2 * kPieces>;  ///< of a thread's
    /// A weight may be up to 2^kGrowth, so that what was summed hardly ever has to be brought to another unit.
    static constexpr float kGrowth = 8;

    struct Thread {
        Numbers<Numbers<Numbers<float, 4>, D / 8>, kPieces> out;
        typename Product::Scores scores;
        OfRows unit, total;  ///< the logit whose weight is 1, and the sum of weights
    };
    using Threads = Own<Block, Thread>;

    /// Whose a block's rows are. Made anew where they are needed: no registers keep it while keys go by.
    struct Rows {
        int kv_head, group, first_query, first_head;  ///< the latter two of row 0

        KVSCOPE_DEVICE Rows(const PrefillItem& item, int64_t block_index) {
            const PrefillAttention& p = item.problem;
            const int64_t at = block_index - item.first_block;
            group = p.n_heads / p.n_kv_heads;
            kv_head = static_cast<int>(at % p.n_kv_heads);
            const int64_t first_row = (item.n_tiles - 1 - at / p.n_kv_heads) * kRows;  // the longest first
            first_query = static_cast<int>(first_row / group);
            first_head = static_cast<int>(first_row % group);
        }
        KVSCOPE_DEVICE int query_of(int row) const { return first_query + (first_head + row) / group; }
        KVSCOPE_DEVICE int head_of(int row) const { return kv_head * group + (first_head + row) % group; }
    };

    const PrefillItem& item;
    const PrefillAttention& problem;
    int64_t block_index;

    KVSCOPE_DEVICE PrefillTile(const PrefillItem& of, int64_t index)
        : item(of), problem(of.problem), block_index(index) {}

    KVSCOPE_DEVICE KeysOfRows<T> keys_of(const Rows& rows) const {
        KeysOfRows<T> keys;
        const int last = least(static_cast<int>(problem.n_queries) - 1, rows.query_of(kRows - 1));
        keys.k = static_cast<const T*>(problem.k) + rows.kv_head * problem.kv_head_stride;
        keys.v = static_cast<const T*>(problem.v) + rows.kv_head * problem.kv_head_stride;
        keys.begin = static_cast<int>(first_key_of(problem, rows.first_query)) / kKeys * kKeys;
        keys.end = static_cast<int>(problem.q_begin) + last + 1;
        keys.head_dim = problem.head_dim;
        keys.first_full = static_cast<int>(first_key_of(problem, last));
        keys.last_full = static_cast<int>(problem.q_begin) + rows.first_query;
        keys.factor = factor_of(problem.scale);
        keys.cardinality = problem.cardinality;
        keys.item = &item;
        keys.block_index = block_index;
        return keys;
    }

    /// A tile's values are copied while its keys are multiplied, and the next one's keys while its values are.
    KVSCOPE_DEVICE void attend(Block& block, Shared& shared) const {
        Threads threads;
        const KeysOfRows<T>& keys = shared.of_rows;
        begin(block, threads, shared);
        int key = keys.begin;
        block.registers([&](int t) { copy_tile(t, keys, keys.k, key, shared.keys); });
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
        const Rows rows(item, block_index);
        block.threads([&](int t) {
            copy_queries(t, rows, shared);
            if (t < kRows) find_keys(t, rows, shared.seen[t]);
            if (t == 0) shared.of_rows = keys_of(rows);
            if (t < kKeys) shared.counts[t] = 1;
            Thread& own = threads[t];
            KVSCOPE_UNROLL
            for (int piece = 0; piece < kPieces; ++piece) {
                KVSCOPE_UNROLL
                for (int n = 0; n < D / 8; ++n) own.out[piece][n] = {};
            }
            KVSCOPE_UNROLL
            for (int i = 0; i < 2 * kPieces; ++i) {
                own.unit[i] = kLowest;
                own.total[i] = 0;
            }
        });
    }

    KVSCOPE_DEVICE void copy_queries(int t, const Rows& rows, Shared& shared) const {
        constexpr int kLoads = D / kPerLoad<T>;
        KVSCOPE_UNROLL_BY(2)
        for (int i = t; i < kRows * kLoads; i += Block::kThreads) {
            const int row = i / kLoads, c = i % kLoads * kPerLoad<T>;
            const T* query = static_cast<const T*>(problem.q) + rows.query_of(row) * problem.q_token_stride +
                             int64_t{rows.head_of(row)} * problem.head_dim;
            begin_copy(shared.queries + row * kStride + c, query + c,
                       rows.query_of(row) < problem.n_queries && c < problem.head_dim);
        }
    }

    KVSCOPE_DEVICE void find_keys(int row, const Rows& rows, Seen& seen) const {
        const int query = rows.query_of(row);
        const bool exists = query < problem.n_queries;
        seen.low = exists ? static_cast<int>(first_key_of(problem, query)) : 0;
        seen.high = exists ? static_cast<int>(problem.q_begin) + query : -1;
    }

    /// Begins to copy the rows from `key` on of k or v; nothing behind the last.
    KVSCOPE_DEVICE static void copy_tile(int t, const KeysOfRows<T>& keys, const T* rows, int key, T* to) {
        const int d = keys.head_dim;
        if (key < keys.end) Product::template copy_rows<kKeys>(t, d, to, rows + int64_t{key} * d, d, keys.end - key);
        commit_copies();
    }

    KVSCOPE_DEVICE static void read_counts(int t, int key, Shared& shared) {
        const KeysOfRows<T>& keys = shared.of_rows;
        static_assert(kKeys <= Block::kThreads);
        if (t < kKeys) shared.counts[t] = key + t < keys.end ? keys.cardinality[key + t] : 1.0f;
    }

    KVSCOPE_DEVICE void multiply_keys(Block& block, Threads& threads, Shared& shared) const {
        const auto scores = [&](int t) -> typename Product::Scores& { return threads[t].scores; };
        if constexpr (Shape::kIsBf16) {
            Own<Block, typename Product::Fragments> a;
            const auto fragments = [&](int t) -> typename Product::Fragments& { return a[t]; };
            Product::multiply_bf16(
                block,
                [&](int c) {
                    Product::load_rows(block, shared.queries, c, fragments);
                    return fragments;
                },
                shared.keys, scores);
        } else {
            Product::multiply_f32(block, shared.queries, shared.keys, scores);
        }
        if (shared.of_rows.factor == 1) Product::scale_scores(block, shared.of_rows.item->problem.scale, scores);
    }

    /// Leaves the scores of keys that are seen, and brings what was summed before to a unit that fits the largest.
    KVSCOPE_DEVICE void find_largest(Block& block, int key, Threads& threads, Shared& shared) const {
        const KeysOfRows<T>& keys = shared.of_rows;
        if (key < keys.first_full || key + kKeys - 1 > keys.last_full)
            block.anew([&](int t) { mask(t, key, shared, threads[t]); });
        Own<Block, OfRows> largest;
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < 2 * kPieces; ++i) largest[t][i] = kMasked;
            Product::each(threads[t].scores,
                          [&](float score, int i, int) { largest[t][i] = most(largest[t][i], score); });
        });
        block.join_lanes(largest, 1, Most{});
        block.join_lanes(largest, 2, Most{});
        Own<Block, int> grew;
        block.ask_warps(grew, [&](int t) {
            bool any = false;
            KVSCOPE_UNROLL
            for (int i = 0; i < 2 * kPieces; ++i) {
                largest[t][i] = product_of(largest[t][i], keys.factor);
                any |= outgrew(largest[t][i], threads[t].unit[i]);
            }
            return any;
        });
        block.registers([&](int t) {
            if (grew[t]) rescale(largest[t], threads[t]);
        });
    }

    /// Whether weights in a row's former unit are too large to go on with.
    KVSCOPE_DEVICE static bool outgrew(float largest, float unit) { return largest - unit > kGrowth; }

    /// Leaves the scores of keys that a row sees, all others kMasked.
    KVSCOPE_DEVICE static void mask(int t, int key, const Shared& shared, Thread& own) {
        Numbers<Seen, 2 * kPieces> seen;
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * kPieces; ++i) seen[i] = shared.seen[Product::row_of(t, i)];
        const int first = key + Product::first_column_of(t);
        Product::each(own.scores, [&](float& score, int i, int column) {
            if (first + column < seen[i].low || first + column > seen[i].high) score = kMasked;
        });
    }

    KVSCOPE_DEVICE static void rescale(const OfRows& largest, Thread& own) {
        OfRows correction;
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * kPieces; ++i) {
            const float unit = outgrew(largest[i], own.unit[i]) ? largest[i] : own.unit[i];
            correction[i] = power_of_two(own.unit[i] - unit);
            own.unit[i] = unit;
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

    /// Of 16 keys the scores to weights 2^(logit - unit).
    KVSCOPE_DEVICE static void weigh(int t, int key, Thread& own, const Shared& shared) {
        const float factor = shared.of_rows.factor;
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * kPieces; ++i) {
            KVSCOPE_UNROLL
            for (int column = key; column < key + 16; column += column % 2 == 0 ? 1 : 7) {
                float& score = own.scores[i / 2][column / 8][i % 2 * 2 + column % 2];
                score = power_of_two(multiply_add(score, factor, -own.unit[i]));
                const float count = shared.counts[Product::first_column_of(t) + column];
                own.total[i] = multiply_add(score, count, own.total[i]);
            }
        }
    }

    /// In bf16 the weights of some keys are found while the values of those before them are multiplied.
    KVSCOPE_DEVICE void add_values(Block& block, Threads& threads, Shared& shared) const {
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

    KVSCOPE_DEVICE void add_values_bf16(Block& block, Threads& threads, const Shared& shared) const {
        Own<Block, typename Product::Fragments> a;
        Own<Block, Four> b;
        KVSCOPE_UNROLL
        for (int key = 0; key < kKeys; key += 16) {
            block.registers([&](int t) {
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

    KVSCOPE_DEVICE void finish(Block& block, Threads& threads, const Shared& shared) const {
        Own<Block, OfRows> total;
        block.registers([&](int t) { total[t] = threads[t].total; });
        block.join_lanes(total, 1, Add{});
        block.join_lanes(total, 2, Add{});
        const PrefillItem& item = *shared.of_rows.item;
        const PrefillAttention& problem = item.problem;
        const Rows rows(item, shared.of_rows.block_index);
        T* const out = static_cast<T*>(problem.out);
        Softmax* const sums = item.sums;
        const int64_t n_queries = problem.n_queries, apart = problem.out_token_stride;
        const int d = problem.head_dim;
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < 2 * kPieces; ++i) {
                const int row = Product::row_of(t, i);
                const int query = rows.query_of(row), head = rows.head_of(row);
                if (query >= n_queries) continue;
                const float inverse = inverse_of(total[t][i]);
                if (sums && t % 4 == 0) sums[head * n_queries + query] = {threads[t].unit[i], inverse};
                if (!out) continue;
                T* const to = out + query * apart + int64_t{head} * d + 2 * (t % 4);
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
    static constexpr int kOwn = 2 * Shape::kPieces;            ///< keys of a thread
    static constexpr int kTilesInF32 = kQueries > 32 ? 1 : 2;  ///< whose weights are summed in f32, then in f64

    struct Thread {
        typename Product::Scores scores;
        Numbers<Fragments, Shape::kIsBf16 ? D / 16 : 1> keys;
        Numbers<float, kOwn> few;
    };
    using Threads = Own<Block, Thread>;
    using Sums = Own<Block, Numbers<double, kOwn>>;

    const PrefillAttention& problem;
    const Softmax* softmax;  ///< of this head's queries
    const T* q;
    int head, first_key, n_keys, n_queries, head_dim;
    int64_t apart;               ///< elements from one query to the next
    int first_full, end_full;    ///< queries that see all of the tile's keys
    int first_query, end_query;  ///< those that see any of them
    float factor;

    KVSCOPE_DEVICE ColumnTile(const PrefillItem& item, const ColumnItem& columns, int64_t block_index)
        : problem(item.problem) {
        const int64_t at = block_index - columns.first_block;
        const auto q_begin = static_cast<int>(problem.q_begin);
        head = static_cast<int>(at / columns.n_tiles);
        first_key = static_cast<int>(at % columns.n_tiles) * kKeys;
        n_queries = static_cast<int>(problem.n_queries);
        n_keys = least(kKeys, q_begin + n_queries - first_key);
        head_dim = problem.head_dim;
        apart = problem.q_token_stride;
        q = static_cast<const T*>(problem.q) + int64_t{head} * head_dim;
        softmax = item.sums + head * problem.n_queries;
        factor = factor_of(problem.scale);
        first_query = most<int>(0, first_key - q_begin) / kQueries * kQueries;
        end_query = static_cast<int>(first_query_from(problem, first_key + n_keys));
        first_full = first_key + n_keys - 1 - q_begin;
        end_full = static_cast<int>(first_query_from(problem, first_key + 1));
    }

    KVSCOPE_DEVICE void add(Block& block, Shared& shared) const {
        Threads threads;
        Sums sums;
        load_keys(block, threads, shared);
        block.registers([&](int t) {
            sums[t] = {};
            threads[t].few = {};
            copy_queries(t, first_query, 0, shared);
        });
        int waiting = 0, stage = 0;
        KVSCOPE_UNROLL_BY(1)
        for (int query = first_query; query < end_query; query += kQueries, stage = 1 - stage) {
            block.threads([](int) { wait_for_copies<0>(); });
            block.registers([&](int t) { copy_queries(t, query + kQueries, 1 - stage, shared); });
            multiply_queries(block, stage, threads, shared);
            if (query < first_full || least(query + kQueries, n_queries) > end_full)
                block.registers([&](int t) { mask(t, query, threads[t]); });
            block.registers([&](int t) { add_weights(t, shared.softmax + stage * kQueries, threads[t]); });
            if (++waiting == kTilesInF32) {
                flush(block, threads, sums);
                waiting = 0;
            }
        }
        block.registers([](int) { wait_for_copies<0>(); });
        flush(block, threads, sums);
        write(block, sums);
    }

    KVSCOPE_DEVICE void load_keys(Block& block, Threads& threads, Shared& shared) const {
        const int kv_head = head / (problem.n_heads / problem.n_kv_heads);
        const T* rows =
            static_cast<const T*>(problem.k) + kv_head * problem.kv_head_stride + int64_t{first_key} * head_dim;
        block.threads([&](int t) {
            Product::template copy_rows<kKeys>(t, head_dim, shared.keys(), rows, head_dim, n_keys);
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
    KVSCOPE_DEVICE void copy_queries(int t, int first, int stage, Shared& shared) const {
        if (first < end_query) {
            T* to = shared.queries + stage * Shared::kQueries;
            Product::template copy_rows<kQueries>(t, head_dim, to, q + first * apart, apart, n_queries - first);
            if (t < kQueries)
                begin_copy<sizeof(Softmax)>(shared.softmax + stage * kQueries + t, softmax + first + t,
                                            first + t < n_queries);
        }
        commit_copies();
    }

    KVSCOPE_DEVICE void multiply_queries(Block& block, int stage, Threads& threads, Shared& shared) const {
        const auto scores = [&](int t) -> typename Product::Scores& { return threads[t].scores; };
        const T* queries = shared.queries + stage * Shared::kQueries;
        if constexpr (Shape::kIsBf16)
            Product::multiply_bf16(
                block, [&](int c) { return [&threads, c](int t) -> Fragments& { return threads[t].keys[c / 16]; }; },
                queries, scores);
        else
            Product::multiply_f32(block, shared.keys(), queries, scores);
        if (factor == 1) Product::scale_scores(block, problem.scale, scores);
    }

    /// Leaves the scores of keys that a query sees, all others kMasked.
    KVSCOPE_DEVICE void mask(int t, int first, Thread& own) const {
        KVSCOPE_UNROLL
        for (int column = 0; column < kQueries; column += column % 2 == 0 ? 1 : 7) {
            const int query = first + Product::first_column_of(t) + column;
            if (query >= n_queries) continue;
            const auto low = static_cast<int>(first_key_of(problem, query));
            const int high = static_cast<int>(problem.q_begin) + query;
            KVSCOPE_UNROLL
            for (int i = 0; i < kOwn; ++i) {
                const int key = first_key + Product::row_of(t, i);
                if (key < low || key > high) own.scores[i / 2][column / 8][i % 2 * 2 + column % 2] = kMasked;
            }
        }
    }

    /// Logits are rounded as PrefillTile rounds them: the sums fit its unit.
    KVSCOPE_DEVICE void add_weights(int t, const Softmax* of_queries, Thread& own) const {
        KVSCOPE_UNROLL
        for (int n = 0; n < kQueries / 8; ++n) {
            const Loaded<float> two =
                load_aligned(reinterpret_cast<const float*>(of_queries + n * 8 + Product::first_column_of(t)));
            KVSCOPE_UNROLL
            for (int i = 0; i < kOwn; ++i) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 2; ++e) {
                    const float score = own.scores[i / 2][n][i % 2 * 2 + e];
                    const float weight = power_of_two(multiply_add(score, factor, -two[2 * e]));
                    own.few[i] = multiply_add(weight, two[2 * e + 1], own.few[i]);
                }
            }
        }
    }

    KVSCOPE_DEVICE static void flush(Block& block, Threads& threads, Sums& sums) {
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < kOwn; ++i) {
                sums[t][i] += static_cast<double>(threads[t].few[i]);
                threads[t].few[i] = 0;
            }
        });
    }

    /// Adds up the lanes that hold other queries of the same keys.
    KVSCOPE_DEVICE void write(Block& block, Sums& sums) const {
        block.join_lanes(sums, 1, Add{});
        block.join_lanes(sums, 2, Add{});
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < kOwn; ++i) {
                const int row = Product::row_of(t, i), key = first_key + row;
                if (t % 4 != 0 || row >= n_keys) continue;
                const double n = problem.cardinality ? static_cast<double>(problem.cardinality[key]) : 1.0;
                problem.column_sums[head * problem.column_stride + key] += sums[t][i] * n;
            }
        });
    }
};

}  // namespace kvscope::kernels::cuda
