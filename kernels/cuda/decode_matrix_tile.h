#pragma once

#include "kernels/cuda/decode_tile.h"

/// Decode attention in bf16 on the tensor cores (mma.m16n8k16). A block computes one piece of a row, and each warp
/// computes some entries of the piece. Keys and values go from memory directly to registers while the previous 16
/// entries are multiplied. Queries are the rows of the first product and the columns of the second, so each thread
/// needs the weights of its own logits. A weight is the sum of two bf16 numbers (error 2^-17). With at most four
/// queries, columns 0-3 hold the larger numbers, and columns 4-7 hold the smaller numbers.
namespace kvscope::kernels::cuda {

inline constexpr int decode_columns = 8;  ///< columns of a product
inline constexpr int64_t decode_most_stride =
    1 << 22;  ///< largest stride for which offsets within a piece fit into an int

template <int D>
struct DecodeMatrixShared {
    static constexpr int n_warps = decode_threads / 32;
    float largest[n_warps][decode_columns], total[n_warps][decode_columns];
    float values[n_warps][decode_columns][D];  ///< used first for each thread's scores, then for its weights
    int64_t state;                             ///< rarely needed, so not kept in registers
    int begin, first_query, n_queries;
};

/// One piece of a row with up to Q queries (4 or 8). Keys and values are aligned, with D channels (64, 128 or 256).
template <class Block, int D, int Q>
struct DecodeMatrixPiece : PieceOfRow {
    static constexpr int batch_entries = 16;  ///< entries of a warp that are multiplied together
    static constexpr int n_batches = decode_piece_entries / (Block::block_threads / 32 * batch_entries);
    static constexpr int key_loads = D / 32, value_loads = D / 64;  ///< a thread's loads per entry
    static constexpr bool has_two_columns = Q <= 4;                 ///< whether each query has two columns
    using Shared = DecodeMatrixShared<D>;
    using Held = Numbers<Four, D / 16>;  ///< one batch: keys of two entries or values of four
    using Scores = Numbers<Numbers<float, 2>, 2 * n_batches>;
    using Sums = Numbers<Numbers<float, 4>, D / 16>;

    /// Local copies, because the compiler must assume that a thread's stores change the originals.
    const bf16 *keys, *values;  ///< key and value of the piece's first entry
    int key_stride, value_stride, key_dim;

    Own<Block, Scores> scores;
    Own<Block, Sums> sums;

    KVSCOPE_DEVICE DecodeMatrixPiece(const DecodeArrays& all, const DecodePass& pass, int64_t block)
        : PieceOfRow(all, pass, block, Q),
          keys(static_cast<const bf16*>(part.row.k) + begin * part.row.k_stride),
          values(static_cast<const bf16*>(part.row.v) + begin * part.row.v_stride),
          key_stride(static_cast<int>(part.row.k_stride)),
          value_stride(static_cast<int>(part.row.v_stride)),
          key_dim(part.row.key_dim) {}

    KVSCOPE_DEVICE void attend(Block& block, Shared& shared) {
        Own<Block, Numbers<Held, 2>> held;
        block.threads([&](int t) {
            if (t == 0) {
                shared.state = state;
                shared.begin = begin, shared.first_query = first_query, shared.n_queries = n_queries;
            }
            fetch(t, 0, held[t][0]);
        });
        KVSCOPE_UNROLL
        for (int batch = 0; batch < 2 * n_batches; ++batch) {
            block.registers([&](int t) { fetch(t, batch + 1, held[t][(batch + 1) % 2]); });
            const auto loads = [&](int t) -> const Held& { return held[t][batch % 2]; };
            if (batch % n_batches * batch_entries < n_of_warp()) {
                if (batch < n_batches)
                    multiply_keys(block, batch, loads, shared);
                else
                    add_values(block, batch - n_batches, loads, shared);
            }
            if (batch != n_batches - 1) continue;
            weigh(block, shared);
            block.registers([&](int t) { sums[t] = {}; });
        }
        write_values(block, shared);
    }

 private:
    KVSCOPE_DEVICE int n_of_warp() const {
        return (count + Block::block_threads / 32 * batch_entries - 1) / (Block::block_threads / 32 * batch_entries) *
               batch_entries;
    }
    KVSCOPE_DEVICE int first_of(int t, int batch) const { return t / 32 * n_of_warp() + batch * batch_entries; }
    /// Returns the first of the two adjacent entries that a thread has in a half of a batch.
    KVSCOPE_DEVICE static int neighbour_of(int t, int half) { return half * 8 + t % 4 * 2; }
    KVSCOPE_DEVICE static int column_of(int t) { return t % 32 / 4; }
    KVSCOPE_DEVICE static int query_of(int t) { return has_two_columns ? column_of(t) % 4 : column_of(t); }

    /// Starts to load a batch. The first n_batches batches are keys, the next ones values. Missing entries get weight
    /// 0.
    KVSCOPE_DEVICE void fetch(int t, int batch, Held& to) const {
        if (batch >= 2 * n_batches || batch % n_batches * batch_entries >= n_of_warp()) return;
        if (batch < n_batches)
            fetch_keys(t, first_of(t, batch), to);
        else
            fetch_values(t, first_of(t, batch - n_batches), to);
    }

    KVSCOPE_DEVICE void fetch_keys(int t, int first, Held& to) const {
        KVSCOPE_UNROLL
        for (int half = 0; half < 2; ++half) {
            const int entry = min_of_two(first + half * 8 + column_of(t), count - 1);
            const bf16* key = keys + entry * key_stride + t % 4 * 8;
            KVSCOPE_UNROLL
            for (int i = 0; i < key_loads; ++i)
                to[half * key_loads + i] = words_at(key + i * 32, i * 32 + t % 4 * 8 < key_dim);
        }
    }

    KVSCOPE_DEVICE void fetch_values(int t, int first, Held& to) const {
        KVSCOPE_UNROLL
        for (int e = 0; e < 4; ++e) {
            const int entry = min_of_two(first + neighbour_of(t, e / 2) + e % 2, count - 1);
            const bf16* value = values + entry * value_stride + column_of(t) * 8;
            KVSCOPE_UNROLL
            for (int i = 0; i < value_loads; ++i)
                to[e * value_loads + i] = words_at(value + i * 64, i * 64 + column_of(t) * 8 < arrays.head_dim);
        }
    }

    KVSCOPE_DEVICE static Four words_at(const bf16* p, bool exist) { return exist ? load_once(p) : Four{}; }

    /// Reads the queries from the cache again for each batch, because no registers are free.
    KVSCOPE_DEVICE Four query_words(int t, int i, const Shared& shared) const {
        const DecodeRow& row = part.row;
        const int channel = i * 32 + t % 4 * 8;
        if (query_of(t) >= shared.n_queries || channel >= key_dim) return {};
        const int query = shared.first_query + query_of(t);
        return load_aligned(static_cast<const bf16*>(row.q) + query * row.q_stride + channel).words;
    }

    /// Multiplies queries and keys. Both have eight adjacent channels per thread.
    template <class Loads>
    KVSCOPE_DEVICE void multiply_keys(Block& block, int batch, const Loads& loads, Shared& shared) {
        Own<Block, Numbers<Numbers<float, 4>, 2>> products;  // the lower rows belong to no query
        Own<Block, Four> query;
        block.registers([&](int t) { products[t] = {}; });
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * key_loads; ++i) {
            if (i % 2 == 0) block.anew([&](int t) { query[t] = query_words(t, i / 2, shared); });
            Own<Block, Four> a;
            block.registers([&](int t) { a[t] = {{query[t][i % 2 * 2], 0, query[t][i % 2 * 2 + 1], 0}}; });
            KVSCOPE_UNROLL
            for (int half = 0; half < 2; ++half)
                block.multiply([&](int t) -> Numbers<float, 4>& { return products[t][half]; },
                               [&](int t) -> const Four& { return a[t]; },
                               [&](int t) { return loads(t)[half * key_loads + i / 2].at + i % 2 * 2; });
        }
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < 4; ++i) place_of(t, 4 * batch + i, shared) = products[t][i / 2][i % 2];
        });
    }

    /// Returns the place of score i. Pairs of weights later replace scores: first larger parts, then smaller parts.
    KVSCOPE_DEVICE static float& place_of(int t, int i, Shared& shared) {
        static_assert(sizeof shared.values >= sizeof(float) * 4 * n_batches * Block::block_threads);
        return (&shared.values[0][0][0])[i * Block::block_threads + t];
    }

    template <class F>
    KVSCOPE_DEVICE void each_score(int t, const F& f) {
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * n_batches; ++i) {
            KVSCOPE_UNROLL
            for (int e = 0; e < 2; ++e) {
                const int entry = first_of(t, i / 2) + neighbour_of(t, i % 2) + e;
                f(scores[t][i][e], entry, i / 2 * batch_entries < n_of_warp() && entry < count);
            }
        }
    }

    KVSCOPE_DEVICE void weigh(Block& block, Shared& shared) {
        const float scale = arrays.scale * log2_e;
        Own<Block, float> reduced;
        block.registers([&](int t) {
            reduced[t] = lowest_maximum;
            KVSCOPE_UNROLL
            for (int i = 0; i < 4 * n_batches; ++i) scores[t][i / 2][i % 2] = place_of(t, i, shared);
            each_score(t, [&](float& score, int, bool exists) {
                score = exists ? score * scale : masked_logit;
                reduced[t] = quick_max_of_two(reduced[t], score);
            });
        });
        join_columns(block, reduced, Most{}, shared.largest);
        block.registers([&](int t) {
            reduced[t] = weigh_scores(t, shared, join_warps(shared.largest, column_of(t), Most{}));
            pack_weights(t, shared);
        });
        join_columns(block, reduced, Add{}, shared.total);
    }

    KVSCOPE_DEVICE float weigh_scores(int t, const Shared& shared, float largest) {
        const DecodeRow& row = part.row;
        const bool is_query = column_of(t) < shared.n_queries;  // false for the second column of a query
        const int from = shared.begin;
        const float* n = row.cardinality ? row.cardinality + from : nullptr;
        float* attention = row.attention && is_query
                               ? row.attention + (shared.first_query + query_of(t)) * row.attention_stride + from
                               : nullptr;
        float total = 0;
        each_score(t, [&](float& score, int entry, bool exists) {
            score = exp2_of(score - largest);
            if (!exists) return;
            const float counted = n ? multiply_rounded(score, n[entry]) : score;
            if (attention) attention[entry] = counted;
            total += counted;
        });
        return total;
    }

    KVSCOPE_DEVICE void pack_weights(int t, Shared& shared) {
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * n_batches; ++i) {
            const float first = scores[t][i][0], second = scores[t][i][1];
            const uint32_t rounded = pack_bf16_pair(first, second);
            const uint32_t rest =
                pack_bf16_pair(first - bits_to_float(rounded << 16), second - bits_to_float(rounded & 0xffff0000u));
            place_of(t, i, shared) = bits_to_float(has_two_columns && column_of(t) >= 4 ? rest : rounded);
            if (!has_two_columns) place_of(t, 2 * n_batches + i, shared) = bits_to_float(rest);
        }
    }

    /// Combines a warp's numbers per column and shares the results with all warps.
    template <class F>
    KVSCOPE_DEVICE static void join_columns(Block& block, Own<Block, float>& x, const F& combine,
                                            float (&to)[Shared::n_warps][decode_columns]) {
        KVSCOPE_UNROLL
        for (int step = 1; step < 4; step *= 2) block.join_lanes(x, step, combine);
        block.threads([&](int t) {
            if (t % 4 == 0) to[t / 32][column_of(t)] = x[t];
        });
    }

    template <class F>
    KVSCOPE_DEVICE static float join_warps(const float (&of)[Shared::n_warps][decode_columns], int column,
                                           const F& combine) {
        float x = of[0][column];
        KVSCOPE_UNROLL
        for (int warp = 1; warp < Shared::n_warps; ++warp) x = combine(x, of[warp][column]);
        return x;
    }

    /// Adds a batch's values. Word i of a load holds channels 2 i and 2 i + 1, and product i computes these channels.
    template <class Loads>
    KVSCOPE_DEVICE void add_values(Block& block, int batch, const Loads& loads, Shared& shared) {
        Own<Block, Numbers<uint32_t, has_two_columns ? 2 : 4>> weights;
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < (has_two_columns ? 2 : 4); ++i)
                weights[t][i] = float_to_bits(place_of(t, i / 2 * 2 * n_batches + 2 * batch + i % 2, shared));
        });
        KVSCOPE_UNROLL
        for (int i = 0; i < 4 * value_loads; ++i) {
            Own<Block, Four> a;
            block.registers([&](int t) {
                const auto word = [&](int e) { return loads(t)[e * value_loads + i / 4][i % 4]; };
                KVSCOPE_UNROLL
                for (int half = 0; half < 2; ++half) {
                    const uint32_t first = word(2 * half), second = word(2 * half + 1);
                    a[t][2 * half] = (first & 0xffffu) | second << 16;
                    a[t][2 * half + 1] = first >> 16 | (second & 0xffff0000u);
                }
            });
            KVSCOPE_UNROLL
            for (int number = 0; number < (has_two_columns ? 1 : 2); ++number)
                block.multiply([&](int t) -> Numbers<float, 4>& { return sums[t][i]; },
                               [&](int t) -> const Four& { return a[t]; },
                               [&](int t) { return weights[t].at + 2 * number; });
        }
    }

    KVSCOPE_DEVICE void write_values(Block& block, Shared& shared) {
        block.threads([](int) {});  // waits for readers of the weights in the same memory
        block.threads([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < 4 * value_loads; ++i) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 4; ++e)
                    shared.values[t / 32][t % 4 * 2 + e % 2][i / 4 * 64 + column_of(t) * 8 + i % 4 * 2 + e / 2] =
                        sums[t][i][e];
            }
        });
        block.registers([&](int t) {
            const int n = shared.n_queries;
            const int64_t first = shared.state;
            for (int query = 0; query < n; ++query)
                for (int c = t; c < arrays.head_dim; c += Block::block_threads) {
                    float sum = 0;
                    KVSCOPE_UNROLL
                    for (int warp = 0; warp < Shared::n_warps; ++warp) {
                        sum += shared.values[warp][query][c];
                        if (has_two_columns) sum += shared.values[warp][query + 4][c];
                    }
                    arrays.values[(first + query) * arrays.head_dim + c] = sum;
                }
            if (t >= n) return;
            arrays.largest[first + t] = join_warps(shared.largest, t, Most{});
            arrays.total[first + t] = join_warps(shared.total, t, Add{});
        });
    }
};

}  // namespace kvscope::kernels::cuda
