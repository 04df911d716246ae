#pragma once

#include "kernels/cuda/decode_tile.h"

/// Decode attention in bf16 on the matrix units (mma.m16n8k16). A block has a piece of a row, a warp some of its
/// entries: their keys and values go from memory straight to the registers in which a product takes them, 16 bytes a
/// load, and the next 16 entries are on their way while these are multiplied.
///
/// A product of queries by keys has queries as rows and entries as columns; one of values by weights has channels as
/// rows and queries as columns. What a thread holds of the former's result, a query's logits of two neighbours, is what
/// it has to bring as weights to the latter, so that nothing is exchanged between threads. A weight is the sum of two
/// numbers of bf16, which leaves 2^-17 of it. Where there are at most four queries they stand twice among the eight
/// columns: the second four bring the smaller numbers of the sums.
namespace kvscope::kernels::cuda {

inline constexpr int kDecodeColumns = 8;  ///< of a product

/// What the warps leave for one another.
template <int D>
struct DecodeMatrixShared {
    static constexpr int kWarps = kDecodeThreads / 32;
    float largest[kWarps][kDecodeColumns], total[kWarps][kDecodeColumns];
    float values[kWarps][kDecodeColumns][D];
};

/// One piece of a row whose keys and values are aligned, and up to Q of its queries.
/// @tparam D channels of keys and values at most: 64, 128 or 256  @tparam Q 4 or 8
template <class Block, int D, int Q>
struct DecodeMatrixPiece : PieceOfRow {
    static constexpr int kBatch = 16;  ///< entries of a warp that are multiplied at once
    static constexpr int kBatches = kDecodePiece / (Block::kThreads / 32 * kBatch);
    static constexpr int kOfKey = D / 32, kOfValue = D / 64;  ///< a thread's loads of an entry
    static constexpr bool kTwice = Q <= 4;                    ///< whether queries stand twice among the columns
    using Shared = DecodeMatrixShared<D>;
    using Held = Numbers<Four, D / 16>;  ///< of a batch: keys of two entries, or values of four
    using Scores = Numbers<Numbers<float, 4>, 2 * kBatches>;
    using Sums = Numbers<Numbers<float, 4>, D / 16>;
    using Words = Numbers<uint32_t, 2 * kBatches>;  ///< weights of two entries each

    // Kept, since what a thread stores could be what it is told, as far as a compiler knows.
    const bf16 *keys, *values;  ///< of the piece's first entry
    int64_t key_stride, value_stride;
    int key_dim, head_dim;

    Own<Block, Numbers<Four, kOfKey>> queries;
    Own<Block, Scores> scores;
    Own<Block, Words> upper, lower;  ///< weights as two numbers; the latter unused where queries stand twice
    Own<Block, Sums> sums;

    KVSCOPE_DEVICE DecodeMatrixPiece(const DecodeArrays& all, const DecodePass& pass, int64_t block)
        : PieceOfRow(all, pass, block, Q),
          keys(static_cast<const bf16*>(part.row.k) + begin * part.row.k_stride),
          values(static_cast<const bf16*>(part.row.v) + begin * part.row.v_stride),
          key_stride(part.row.k_stride),
          value_stride(part.row.v_stride),
          key_dim(part.row.key_dim),
          head_dim(all.head_dim) {}

    KVSCOPE_DEVICE void attend(Block& block, Shared& shared) {
        Own<Block, Numbers<Held, 2>> held;
        block.registers([&](int t) {
            fetch(t, 0, held[t][0]);
            read_queries(t);
            scores[t] = {};
            sums[t] = {};
        });
        KVSCOPE_UNROLL
        for (int batch = 0; batch < 2 * kBatches; ++batch) {
            block.registers([&](int t) { fetch(t, batch + 1, held[t][(batch + 1) % 2]); });
            const auto loads = [&](int t) -> const Held& { return held[t][batch % 2]; };
            if (batch % kBatches * kBatch < n_of_warp()) {
                if (batch < kBatches)
                    multiply_keys(block, batch, loads);
                else
                    add_values(block, batch - kBatches, loads);
            }
            if (batch == kBatches - 1) weigh(block, shared);
        }
        write_values(block, shared);
    }

 private:
    /// Entries of a warp, in whole batches.
    KVSCOPE_DEVICE int n_of_warp() const {
        return (count + Block::kThreads / 32 * kBatch - 1) / (Block::kThreads / 32 * kBatch) * kBatch;
    }
    /// The first entry of a batch.
    KVSCOPE_DEVICE int first_of(int t, int batch) const { return t / 32 * n_of_warp() + batch * kBatch; }
    /// Of a batch the first of two neighbours whose logits, weights or values a thread has; `half` of the batch.
    KVSCOPE_DEVICE static int neighbour_of(int t, int half) { return half * 8 + t % 4 * 2; }
    KVSCOPE_DEVICE static int column_of(int t) { return t % 32 / 4; }
    KVSCOPE_DEVICE static int query_of(int t) { return kTwice ? column_of(t) % 4 : column_of(t); }

    /// Begins to bring the keys of a batch, or the values of batch - kBatches. A last entry that is repeated weighs
    /// nothing, and so does what a warp with fewer entries has.
    KVSCOPE_DEVICE void fetch(int t, int batch, Held& to) const {
        if (batch >= 2 * kBatches || batch % kBatches * kBatch >= n_of_warp()) return;
        if (batch < kBatches)
            fetch_keys(t, first_of(t, batch), to);
        else
            fetch_values(t, first_of(t, batch - kBatches), to);
    }

    KVSCOPE_DEVICE void fetch_keys(int t, int first, Held& to) const {
        KVSCOPE_UNROLL
        for (int half = 0; half < 2; ++half) {
            const int entry = least(first + half * 8 + column_of(t), count - 1);
            const bf16* key = keys + entry * key_stride + t % 4 * 8;
            KVSCOPE_UNROLL
            for (int i = 0; i < kOfKey; ++i)
                to[half * kOfKey + i] = words_at(key + i * 32, i * 32 + t % 4 * 8 < key_dim);
        }
    }

    KVSCOPE_DEVICE void fetch_values(int t, int first, Held& to) const {
        KVSCOPE_UNROLL
        for (int e = 0; e < 4; ++e) {
            const int entry = least(first + neighbour_of(t, e / 2) + e % 2, count - 1);
            const bf16* value = values + entry * value_stride + column_of(t) * 8;
            KVSCOPE_UNROLL
            for (int i = 0; i < kOfValue; ++i)
                to[e * kOfValue + i] = words_at(value + i * 64, i * 64 + column_of(t) * 8 < head_dim);
        }
    }

    KVSCOPE_DEVICE static Four words_at(const bf16* p, bool exist) { return exist ? load_once(p) : Four{}; }

    KVSCOPE_DEVICE void read_queries(int t) {
        const DecodeRow& row = part.row;
        const bf16* q = static_cast<const bf16*>(row.q) + (first_query + query_of(t)) * row.q_stride + t % 4 * 8;
        KVSCOPE_UNROLL
        for (int i = 0; i < kOfKey; ++i)
            queries[t][i] = words_at(q + i * 32, query_of(t) < n_queries && i * 32 + t % 4 * 8 < key_dim);
    }

    /// Which channels stand in which place of a product is the same for queries and keys: a thread's eight neighbours.
    template <class Loads>
    KVSCOPE_DEVICE void multiply_keys(Block& block, int batch, const Loads& loads) {
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * kOfKey; ++i) {
            Own<Block, Four> a;
            block.registers([&](int t) {
                const Four& words = queries[t][i / 2];
                a[t] = {{words[i % 2 * 2], 0, words[i % 2 * 2 + 1], 0}};
            });
            KVSCOPE_UNROLL
            for (int half = 0; half < 2; ++half)
                block.multiply([&](int t) -> Numbers<float, 4>& { return scores[t][2 * batch + half]; },
                               [&](int t) -> const Four& { return a[t]; },
                               [&](int t) { return loads(t)[half * kOfKey + i / 2].at + i % 2 * 2; });
        }
    }

    /// f(the score, the entry's number in the piece) of all of a thread's that are there.
    template <class F>
    KVSCOPE_DEVICE void each_score(int t, const F& f) {
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * kBatches; ++i) {
            KVSCOPE_UNROLL
            for (int e = 0; e < 2; ++e) {
                const int entry = first_of(t, i / 2) + neighbour_of(t, i % 2) + e;
                f(scores[t][i][e], entry, i / 2 * kBatch < n_of_warp() && entry < count);
            }
        }
    }

    /// Scores to 2^(logit - the piece's largest).
    KVSCOPE_DEVICE void weigh(Block& block, Shared& shared) {
        const float scale = arrays.scale * kLog2E;
        Own<Block, float> reduced;
        block.registers([&](int t) {
            reduced[t] = kLowest;
            each_score(t, [&](float& score, int, bool exists) {
                score = exists ? score * scale : kMasked;
                reduced[t] = quick_most(reduced[t], score);
            });
        });
        join_columns(block, reduced, Most{}, shared.largest);
        block.registers([&](int t) {
            reduced[t] = weigh_scores(t, join_warps(shared.largest, column_of(t), Most{}));
            pack_weights(t);
        });
        join_columns(block, reduced, Add{}, shared.total);
    }

    /// Returns the sum of a thread's weights.
    KVSCOPE_DEVICE float weigh_scores(int t, float largest) {
        const DecodeRow& row = part.row;
        const bool is_query = column_of(t) < n_queries;  // and no second one
        const float* n = row.cardinality ? row.cardinality + begin : nullptr;
        float* attention = row.attention && is_query
                               ? row.attention + (first_query + query_of(t)) * row.attention_stride + begin
                               : nullptr;
        float total = 0;
        each_score(t, [&](float& score, int entry, bool exists) {
            score = power_of_two(score - largest);
            if (!exists) return;
            const float counted = n ? product_of(score, n[entry]) : score;
            if (attention) attention[entry] = counted;
            total += counted;
        });
        return total;
    }

    KVSCOPE_DEVICE void pack_weights(int t) {
        KVSCOPE_UNROLL
        for (int i = 0; i < 2 * kBatches; ++i) {
            const float first = scores[t][i][0], second = scores[t][i][1];
            const uint32_t rounded = pair_of(first, second);
            const uint32_t rest =
                pair_of(first - bits_to_float(rounded << 16), second - bits_to_float(rounded & 0xffff0000u));
            upper[t][i] = kTwice && column_of(t) >= 4 ? rest : rounded;
            if (!kTwice) lower[t][i] = rest;
        }
    }

    /// Of each column a warp's numbers become one, which all warps see.
    template <class F>
    KVSCOPE_DEVICE static void join_columns(Block& block, Own<Block, float>& x, const F& combine,
                                            float (&to)[Shared::kWarps][kDecodeColumns]) {
        KVSCOPE_UNROLL
        for (int step = 1; step < 4; step *= 2) block.join_lanes(x, step, combine);
        block.threads([&](int t) {
            if (t % 4 == 0) to[t / 32][column_of(t)] = x[t];
        });
    }

    template <class F>
    KVSCOPE_DEVICE static float join_warps(const float (&of)[Shared::kWarps][kDecodeColumns], int column,
                                           const F& combine) {
        float x = of[0][column];
        KVSCOPE_UNROLL
        for (int warp = 1; warp < Shared::kWarps; ++warp) x = combine(x, of[warp][column]);
        return x;
    }

    /// Word i of a load has the channels 2 i and 2 i + 1 of an entry: rows lane / 4 and lane / 4 + 8 of product i.
    template <class Loads>
    KVSCOPE_DEVICE void add_values(Block& block, int batch, const Loads& loads) {
        KVSCOPE_UNROLL
        for (int i = 0; i < 4 * kOfValue; ++i) {
            Own<Block, Four> a;
            block.registers([&](int t) {
                const auto word = [&](int e) { return loads(t)[e * kOfValue + i / 4][i % 4]; };
                KVSCOPE_UNROLL
                for (int half = 0; half < 2; ++half) {
                    const uint32_t first = word(2 * half), second = word(2 * half + 1);
                    a[t][2 * half] = (first & 0xffffu) | second << 16;
                    a[t][2 * half + 1] = first >> 16 | (second & 0xffff0000u);
                }
            });
            const auto add = [&](Own<Block, Words>& weights) {
                block.multiply([&](int t) -> Numbers<float, 4>& { return sums[t][i]; },
                               [&](int t) -> const Four& { return a[t]; },
                               [&](int t) { return weights[t].at + 2 * batch; });
            };
            add(upper);
            if constexpr (!kTwice) add(lower);
        }
    }

    KVSCOPE_DEVICE void write_values(Block& block, Shared& shared) {
        block.threads([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < 4 * kOfValue; ++i) {
                KVSCOPE_UNROLL
                for (int e = 0; e < 4; ++e)
                    shared.values[t / 32][t % 4 * 2 + e % 2][i / 4 * 64 + column_of(t) * 8 + i % 4 * 2 + e / 2] =
                        sums[t][i][e];
            }
        });
        block.registers([&](int t) {
            for (int query = 0; query < n_queries; ++query)
                for (int c = t; c < head_dim; c += Block::kThreads) {
                    float sum = 0;
                    KVSCOPE_UNROLL
                    for (int warp = 0; warp < Shared::kWarps; ++warp) {
                        sum += shared.values[warp][query][c];
                        if (kTwice) sum += shared.values[warp][query + 4][c];
                    }
                    arrays.values[(state + query) * head_dim + c] = sum;
                }
            if (t >= n_queries) return;
            arrays.largest[state + t] = join_warps(shared.largest, t, Most{});
            arrays.total[state + t] = join_warps(shared.total, t, Add{});
        });
    }
};

}  // namespace kvscope::kernels::cuda
