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
    static constexpr int kRows = 16 * kWarps;
    static constexpr int kKeys = kIsBf16 ? (D > 128 ? 32 : 64) : (D > 128 ? 16 : 32);
    static constexpr int kStride = D + kPerLoad<T>;  ///< of rows in shared memory: apart by 4 banks
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

template <class T, int D>
struct PrefillShared {
    using Shape = PrefillShape<T, D>;
    alignas(16) T queries[Shape::kRows * Shape::kStride];
    alignas(16) T keys[Shape::kKeys * Shape::kStride];
    alignas(16) T values[Shape::kKeys * Shape::kStride];
    alignas(16) float weights[Shape::kIsBf16 ? 4 : Shape::kRows * (Shape::kKeys + 4)];
    float counts[Shape::kKeys];
};

template <class T, int D>
struct ColumnShared {
    using Shape = PrefillShape<T, D>;
    alignas(16) T queries[Shape::kRows * Shape::kStride];
    alignas(16) T keys[Shape::kKeys * Shape::kStride];
    double sums[Shape::kWarps * Shape::kKeys];
};

/// The first key that a query sees.
KVSCOPE_DEVICE int64_t first_key_of(const PrefillAttention& p, int64_t query) {
    if (p.first_keys) return p.first_keys[query];
    return p.sliding_window > 0 ? most<int64_t>(0, p.q_begin + query - p.sliding_window + 1) : 0;
}

/// What both kernels share.
template <class Block, class T, int D>
struct PrefillProduct {
    using Shape = PrefillShape<T, D>;
    static constexpr int kKeys = Shape::kKeys, kRows = Shape::kRows, kStride = Shape::kStride;
    static constexpr int kPer = kPerLoad<T>;
    using Scores = Numbers<Numbers<float, 4>, kKeys / 8>;

    /// Begins to copy rows of d elements into shared memory, zeros beside them. from(row): where one begins, nullptr
    /// for zeros.
    template <class From>
    KVSCOPE_DEVICE static void copy_rows(int t, int n_rows, int d, T* to, const From& from) {
        constexpr int kLoads = D / kPer;
        for (int i = t; i < n_rows * kLoads; i += Block::kThreads) {
            const int row = i / kLoads, c = i % kLoads * kPer;
            const T* source = from(row);
            begin_copy(to + row * kStride + c, source != nullptr && c < d ? source + c : nullptr);
        }
    }

    /// scores = queries keys^T, unscaled.
    template <class Score>
    KVSCOPE_DEVICE static void multiply_keys(Block& block, const T* queries, const T* keys, const Score& scores) {
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int n = 0; n < kKeys / 8; ++n) scores(t)[n] = {};
        });
        if constexpr (Shape::kIsBf16)
            multiply_keys_bf16(block, queries, keys, scores);
        else
            block.registers([&](int t) { multiply_keys_f32(t, queries, keys, scores(t)); });
    }

    template <class Score>
    KVSCOPE_DEVICE static void multiply_keys_bf16(Block& block, const T* queries, const T* keys, const Score& scores) {
        Own<Block, Numbers<Four, 2>> a;
        Own<Block, Four> b;
        KVSCOPE_UNROLL
        for (int c = 0; c < D; c += 32) {
            KVSCOPE_UNROLL
            for (int half = 0; half < 2; ++half)
                block.template load_matrices<false>([&](int t) -> Four& { return a[t][half]; },
                                                    [&](int t) {
                                                        return queries + (t / 32 * 16 + t % 16) * kStride + c +
                                                               half * 16 + t % 32 / 16 * 8;
                                                    });
            KVSCOPE_UNROLL
            for (int n = 0; n < kKeys / 8; ++n) {
                block.template load_matrices<false>(
                    [&](int t) -> Four& { return b[t]; },
                    [&](int t) { return keys + (n * 8 + t % 8) * kStride + c + t % 32 / 8 * 8; });
                KVSCOPE_UNROLL
                for (int half = 0; half < 2; ++half)
                    block.multiply([&](int t) -> Numbers<float, 4>& { return scores(t)[n]; },
                                   [&](int t) -> const Four& { return a[t][half]; },
                                   [&](int t) { return b[t].at + 2 * half; });
            }
        }
    }

    KVSCOPE_DEVICE static void multiply_keys_f32(int t, const T* queries, const T* keys, Scores& scores) {
        const int lane = t % 32;
        const T* rows = queries + (t / 32 * 16 + lane / 4) * kStride;
        KVSCOPE_UNROLL_BY(1)
        for (int c = 0; c < D; c += 4) {
            const Loaded<T> upper = load_aligned(rows + c), lower = load_aligned(rows + 8 * kStride + c);
            KVSCOPE_UNROLL
            for (int n = 0; n < kKeys / 8; ++n) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 2; ++e) {
                    const Loaded<T> key = load_aligned(keys + (n * 8 + 2 * (lane % 4) + e) * kStride + c);
                    KVSCOPE_UNROLL
                    for (int i = 0; i < 4; ++i) {
                        scores[n][e] = multiply_add(upper[i], key[i], scores[n][e]);
                        scores[n][2 + e] = multiply_add(lower[i], key[i], scores[n][2 + e]);
                    }
                }
            }
        }
    }
};

template <class Block, class T, int D>
struct PrefillTile {
    using Product = PrefillProduct<Block, T, D>;
    using Shape = PrefillShape<T, D>;
    using Shared = PrefillShared<T, D>;
    static constexpr int kKeys = Shape::kKeys, kRows = Shape::kRows, kStride = Shape::kStride;

    struct Thread {
        Numbers<Numbers<float, 4>, D / 8> out;
        typename Product::Scores scores;
        Numbers<float, 2> largest, total;
        Numbers<int, 2> low, high;  ///< keys that the two rows see; none: high below low
    };
    using Threads = Own<Block, Thread>;

    const PrefillItem& item;
    const PrefillAttention& problem;
    int kv_head, group;
    int64_t first_row;

    KVSCOPE_DEVICE PrefillTile(const PrefillItem& of, int64_t block_index)
        : item(of), problem(of.problem), group(problem.n_heads / problem.n_kv_heads) {
        const int64_t at = block_index - item.first_block;
        kv_head = static_cast<int>(at % problem.n_kv_heads);
        first_row = (item.n_tiles - 1 - at / problem.n_kv_heads) * kRows;  // the longest first
    }

    KVSCOPE_DEVICE int64_t query_of(int row) const { return (first_row + row) / group; }
    KVSCOPE_DEVICE int head_of(int row) const { return kv_head * group + static_cast<int>((first_row + row) % group); }
    KVSCOPE_DEVICE static int row_of(int t, int i) { return t / 32 * 16 + t % 32 / 4 + 8 * i; }

    /// A tile's keys are copied while the values before them are multiplied, and its values while its keys are.
    KVSCOPE_DEVICE void attend(Block& block, Shared& shared) const {
        Threads threads;
        const int64_t last = least(problem.n_queries - 1, query_of(kRows - 1));
        const int64_t end = problem.q_begin + last + 1;
        int64_t key = first_key_of(problem, query_of(0)) / kKeys * kKeys;
        begin(block, threads, shared);
        block.registers([&](int t) { copy_keys(t, key, end, shared); });
        block.registers([&](int t) { copy_values(t, key, end, shared); });
        for (; key < end; key += kKeys) {
            block.threads([](int) { wait_for_copies<1>(); });
            Product::multiply_keys(block, shared.queries, shared.keys,
                                   [&](int t) -> typename Product::Scores& { return threads[t].scores; });
            block.threads([](int) {});
            block.registers([&](int t) { copy_keys(t, key + kKeys, end, shared); });
            weigh(block, key, threads, shared);
            block.threads([](int) { wait_for_copies<1>(); });
            add_values(block, threads, shared);
            block.threads([](int) {});
            block.registers([&](int t) { copy_values(t, key + kKeys, end, shared); });
        }
        finish(block, threads);
    }

    KVSCOPE_DEVICE void begin(Block& block, Threads& threads, Shared& shared) const {
        block.registers([&](int t) {
            Product::copy_rows(t, kRows, problem.head_dim, shared.queries, [&](int row) -> const T* {
                if (query_of(row) >= problem.n_queries) return nullptr;
                return static_cast<const T*>(problem.q) + query_of(row) * problem.q_token_stride +
                       int64_t{head_of(row)} * problem.head_dim;
            });
            Thread& own = threads[t];
            KVSCOPE_UNROLL
            for (int n = 0; n < D / 8; ++n) own.out[n] = {};
            KVSCOPE_UNROLL
            for (int i = 0; i < 2; ++i) {
                const int64_t query = query_of(row_of(t, i));
                const bool exists = query < problem.n_queries;
                own.largest[i] = kLowest;
                own.total[i] = 0;
                own.low[i] = exists ? static_cast<int>(first_key_of(problem, query)) : 0;
                own.high[i] = exists ? static_cast<int>(problem.q_begin + query) : -1;
            }
        });
    }

    /// Where on from `key` the rows of k or v begin; nullptr from `end` on.
    KVSCOPE_DEVICE auto rows_of(const void* data, int64_t key, int64_t end) const {
        const T* rows = static_cast<const T*>(data) + kv_head * problem.kv_head_stride + key * problem.head_dim;
        const auto left = static_cast<int>(least<int64_t>(kKeys, end - key));
        return [=, d = problem.head_dim](int row) { return row < left ? rows + row * d : nullptr; };
    }

    /// Behind the last key a copy of nothing, so that as many are under way as ever.
    KVSCOPE_DEVICE void copy_keys(int t, int64_t key, int64_t end, Shared& shared) const {
        if (key < end) Product::copy_rows(t, kKeys, problem.head_dim, shared.keys, rows_of(problem.k, key, end));
        commit_copies();
    }

    /// And how often each key counts.
    KVSCOPE_DEVICE void copy_values(int t, int64_t key, int64_t end, Shared& shared) const {
        if (key < end) {
            Product::copy_rows(t, kKeys, problem.head_dim, shared.values, rows_of(problem.v, key, end));
            for (int j = t; j < kKeys; j += Block::kThreads)
                shared.counts[j] = problem.cardinality && key + j < end ? problem.cardinality[key + j] : 1.0f;
        }
        commit_copies();
    }

    /// Scores to weights 2^(score - largest), and what was summed before to the same scale.
    KVSCOPE_DEVICE void weigh(Block& block, int64_t key, Threads& threads, Shared& shared) const {
        Own<Block, Numbers<float, 2>> largest;
        const float scale = problem.scale * kLog2E;
        const int first = static_cast<int>(key);
        block.registers([&](int t) {
            Thread& own = threads[t];
            largest[t] = own.largest;
            KVSCOPE_UNROLL
            for (int n = 0; n < kKeys / 8; ++n) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 4; ++e) {
                    const int at = first + n * 8 + 2 * (t % 4) + e % 2;
                    const bool seen = at >= own.low[e / 2] && at <= own.high[e / 2];
                    own.scores[n][e] = seen ? product_of(own.scores[n][e], scale) : kMasked;
                    largest[t][e / 2] = most(largest[t][e / 2], own.scores[n][e]);
                }
            }
        });
        block.join_lanes(largest, 1, Most{});
        block.join_lanes(largest, 2, Most{});
        block.registers([&](int t) { rescale(t, largest[t], threads[t], shared); });
    }

    KVSCOPE_DEVICE static void rescale(int t, const Numbers<float, 2>& largest, Thread& own, Shared& shared) {
        Numbers<float, 2> correction;
        KVSCOPE_UNROLL
        for (int i = 0; i < 2; ++i) {
            correction[i] = power_of_two(own.largest[i] - largest[i]);
            own.largest[i] = largest[i];
            own.total[i] *= correction[i];
        }
        KVSCOPE_UNROLL
        for (int n = 0; n < kKeys / 8; ++n) {
            KVSCOPE_UNROLL
            for (int e = 0; e < 4; ++e) {
                const int j = n * 8 + 2 * (t % 4) + e % 2;
                const float weight = power_of_two(own.scores[n][e] - largest[e / 2]);
                own.scores[n][e] = weight;
                own.total[e / 2] = multiply_add(weight, shared.counts[j], own.total[e / 2]);
                if constexpr (!Shape::kIsBf16) shared.weights[row_of(t, e / 2) * (kKeys + 4) + j] = weight;
            }
        }
        KVSCOPE_UNROLL
        for (int n = 0; n < D / 8; ++n) {
            KVSCOPE_UNROLL
            for (int e = 0; e < 4; ++e) own.out[n][e] *= correction[e / 2];
        }
    }

    KVSCOPE_DEVICE void add_values(Block& block, Threads& threads, const Shared& shared) const {
        if constexpr (Shape::kIsBf16)
            add_values_bf16(block, threads, shared);
        else
            block.registers([&](int t) { add_values_f32(t, threads[t], shared); });
    }

    KVSCOPE_DEVICE void add_values_bf16(Block& block, Threads& threads, const Shared& shared) const {
        Own<Block, Four> a, b;
        KVSCOPE_UNROLL
        for (int k = 0; k < kKeys / 16; ++k) {
            block.registers([&](int t) {
                const auto& scores = threads[t].scores;
                KVSCOPE_UNROLL
                for (int i = 0; i < 4; ++i)
                    a[t][i] = pair_of(scores[2 * k + i / 2][i % 2 * 2], scores[2 * k + i / 2][i % 2 * 2 + 1]);
            });
            KVSCOPE_UNROLL
            for (int n = 0; n < D / 16; ++n) {
                block.template load_matrices<true>(
                    [&](int t) -> Four& { return b[t]; },
                    [&](int t) { return shared.values + (k * 16 + t % 16) * kStride + n * 16 + t % 32 / 16 * 8; });
                KVSCOPE_UNROLL
                for (int half = 0; half < 2; ++half)
                    block.multiply([&](int t) -> Numbers<float, 4>& { return threads[t].out[2 * n + half]; },
                                   [&](int t) -> const Four& { return a[t]; },
                                   [&](int t) { return b[t].at + 2 * half; });
            }
        }
    }

    KVSCOPE_DEVICE static void add_values_f32(int t, Thread& own, const Shared& shared) {
        const float* weights = shared.weights + row_of(t, 0) * (kKeys + 4);
        KVSCOPE_UNROLL_BY(1)
        for (int k = 0; k < kKeys; ++k) {
            const float upper = weights[k], lower = weights[8 * (kKeys + 4) + k];
            const T* row = shared.values + k * kStride + 2 * (t % 4);
            KVSCOPE_UNROLL
            for (int n = 0; n < D / 8; ++n) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 2; ++e) {
                    const float value = to_float(row[n * 8 + e]);
                    own.out[n][e] = multiply_add(upper, value, own.out[n][e]);
                    own.out[n][2 + e] = multiply_add(lower, value, own.out[n][2 + e]);
                }
            }
        }
    }

    KVSCOPE_DEVICE void finish(Block& block, Threads& threads) const {
        Own<Block, Numbers<float, 2>> total;
        block.registers([&](int t) { total[t] = threads[t].total; });
        block.join_lanes(total, 1, Add{});
        block.join_lanes(total, 2, Add{});
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < 2; ++i) {
                const int row = row_of(t, i);
                const int64_t query = query_of(row);
                if (query >= problem.n_queries) continue;
                const float inverse = inverse_of(total[t][i]);
                T* out = static_cast<T*>(problem.out) + query * problem.out_token_stride +
                         int64_t{head_of(row)} * problem.head_dim;
                KVSCOPE_UNROLL
                for (int n = 0; n < D / 8; ++n)
                    if (problem.out && n * 8 < problem.head_dim)
                        store_pair(out + n * 8 + 2 * (t % 4), threads[t].out[n][2 * i] * inverse,
                                   threads[t].out[n][2 * i + 1] * inverse);
                if (item.sums && t % 4 == 0)
                    item.sums[head_of(row) * problem.n_queries + query] = {threads[t].largest[i], inverse};
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

/// The weights of a tile of keys, summed over the chunk's queries of one head in the order of their tiles.
template <class Block, class T, int D>
struct ColumnTile {
    using Product = PrefillProduct<Block, T, D>;
    using Shape = PrefillShape<T, D>;
    using Shared = ColumnShared<T, D>;
    static constexpr int kKeys = Shape::kKeys, kRows = Shape::kRows, kStride = Shape::kStride;
    static constexpr int kColumns = kKeys / 4;  ///< of a thread
    static constexpr int kTilesInF32 = 8;       ///< whose weights are summed in f32, before they go to the f64 sums

    struct Thread {
        typename Product::Scores scores;
        Numbers<float, kColumns> few;
    };
    using Sums = Own<Block, Numbers<double, kColumns>>;

    const PrefillAttention& problem;
    const Softmax* softmax;  ///< of this head's queries
    int head, first_key, n_keys;

    KVSCOPE_DEVICE ColumnTile(const PrefillItem& item, const ColumnItem& columns, int64_t block_index)
        : problem(item.problem) {
        const int64_t at = block_index - columns.first_block;
        head = static_cast<int>(at / columns.n_tiles);
        first_key = static_cast<int>(at % columns.n_tiles) * kKeys;
        n_keys = least(kKeys, static_cast<int>(problem.q_begin + problem.n_queries) - first_key);
        softmax = item.sums + head * problem.n_queries;
    }

    KVSCOPE_DEVICE void add(Block& block, Shared& shared) const {
        const int kv_head = head / (problem.n_heads / problem.n_kv_heads);
        const T* rows =
            static_cast<const T*>(problem.k) + kv_head * problem.kv_head_stride + int64_t{first_key} * problem.head_dim;
        Own<Block, Thread> threads;
        Sums sums;
        block.registers([&](int t) {
            Product::copy_rows(t, kKeys, problem.head_dim, shared.keys, [&](int row) -> const T* {
                return row < n_keys ? rows + int64_t{row} * problem.head_dim : nullptr;
            });
            commit_copies();
            sums[t] = {};
            threads[t].few = {};
        });
        int waiting = 0;
        for (int64_t query = most<int64_t>(0, first_key - problem.q_begin) / kRows * kRows;
             query < problem.n_queries && first_key_of(problem, query) < first_key + n_keys; query += kRows) {
            block.threads([&](int t) {
                copy_queries(t, query, shared);
                commit_copies();
                wait_for_copies<0>();
            });
            Product::multiply_keys(block, shared.queries, shared.keys,
                                   [&](int t) -> typename Product::Scores& { return threads[t].scores; });
            block.threads([&](int t) { add_weights(t, query, threads[t]); });
            if (++waiting == kTilesInF32) {
                flush(block, threads, sums);
                waiting = 0;
            }
        }
        block.registers([](int) { wait_for_copies<0>(); });  // of the keys, where no query sees any
        flush(block, threads, sums);
        write(block, sums, shared);
    }

    KVSCOPE_DEVICE void copy_queries(int t, int64_t first, Shared& shared) const {
        Product::copy_rows(t, kRows, problem.head_dim, shared.queries, [&](int row) -> const T* {
            if (first + row >= problem.n_queries) return nullptr;
            return static_cast<const T*>(problem.q) + (first + row) * problem.q_token_stride +
                   int64_t{head} * problem.head_dim;
        });
    }

    /// Logits are rounded as PrefillTile rounds them: the sums fit the largest logit.
    KVSCOPE_DEVICE void add_weights(int t, int64_t first, Thread& own) const {
        const float scale = problem.scale * kLog2E;
        KVSCOPE_UNROLL
        for (int i = 0; i < 2; ++i) {
            const int64_t query = first + t / 32 * 16 + t % 32 / 4 + 8 * i;
            if (query >= problem.n_queries) continue;
            const Softmax of_query = softmax[query];
            const auto low = static_cast<int>(first_key_of(problem, query));
            const auto high = static_cast<int>(problem.q_begin + query);
            KVSCOPE_UNROLL
            for (int n = 0; n < kKeys / 8; ++n) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 2; ++e) {
                    const int key = first_key + n * 8 + 2 * (t % 4) + e;
                    const float weight =
                        power_of_two(product_of(own.scores[n][2 * i + e], scale) - of_query.largest) * of_query.total;
                    if (key >= low && key <= high) own.few[2 * n + e] += weight;
                }
            }
        }
    }

    KVSCOPE_DEVICE static void flush(Block& block, Own<Block, Thread>& threads, Sums& sums) {
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < kColumns; ++i) {
                sums[t][i] += static_cast<double>(threads[t].few[i]);
                threads[t].few[i] = 0;
            }
        });
    }

    /// Adds the rows up within each warp, then the warps.
    KVSCOPE_DEVICE void write(Block& block, Sums& sums, Shared& shared) const {
        KVSCOPE_UNROLL
        for (int step = 4; step < 32; step *= 2) block.join_lanes(sums, step, Add{});
        block.threads([&](int t) {
            if (t % 32 >= 4) return;
            KVSCOPE_UNROLL
            for (int i = 0; i < kColumns; ++i)
                shared.sums[t / 32 * kKeys + i / 2 * 8 + 2 * (t % 4) + i % 2] = sums[t][i];
        });
        block.registers([&](int t) {
            if (t >= n_keys) return;
            double sum = 0;
            for (int warp = 0; warp < Shape::kWarps; ++warp) sum += shared.sums[warp * kKeys + t];
            const double n = problem.cardinality ? static_cast<double>(problem.cardinality[first_key + t]) : 1.0;
            problem.column_sums[head * problem.column_stride + first_key + t] += sum * n;
        });
    }
};

}  // namespace kvscope::kernels::cuda
