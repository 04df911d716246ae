#pragma once

#include "kernels/attention_decode.h"
#include "kernels/cuda/tile.h"

/// Decode attention as blocks work on it: a row is split along its entries into pieces, whose number depends on the
/// row's length alone; each leaves a softmax sum and a sum of values, and these are joined in the order of the pieces.
namespace kvscope::kernels::cuda {

inline constexpr int kDecodeThreads = 128;
inline constexpr int kDecodePiece = 256;      ///< entries at most
inline constexpr int kDecodeMostDim = 256;    ///< channels of keys and of values
inline constexpr int kDecodeMostQueries = 8;  ///< that a block works on at once
inline constexpr int kDecodeStageBytes = 20 << 10;

/// A row, its strides filled in.
struct DecodePart {
    DecodeRow row;
    int64_t n_pieces;
    int64_t state;  ///< the first of its (n_pieces, n_queries) states
    bool aligned_keys, aligned_values;
};

/// Some queries of a row: a block for each piece.
struct DecodePass {
    int64_t part;
    int first_query;
    int64_t first_block;
};

/// A row and those that continue it: a block for each query.
struct DecodeChain {
    int64_t state, n_pieces;
    int n_queries;
    void* out;
    int64_t out_stride;
    int64_t first_block;
};

struct DecodeArrays {
    const DecodePart* parts;
    int head_dim;
    float scale;
    float* largest;  ///< (states); behind combine_decode the factor of the piece's weights
    float* total;    ///< (states)
    float* values;   ///< (states, d)
};

/// @tparam T of q, k, v  @tparam Q queries
template <class T, int Q>
struct DecodeShared {
    alignas(16) float queries[Q][kDecodeMostDim];
    alignas(16) float weights[kDecodePiece * Q];  ///< (entry, query)
    union {
        alignas(16) T stages[2][kDecodeStageBytes / sizeof(T)];  ///< (entry, channel) each
        float reduced[kDecodeThreads / 2 * Q * kPerLoad<T>];     ///< behind the last stage
    };
};

/// Keys or values of a piece on their way through shared memory, stage by stage, zeros behind their channels.
template <class T>
struct DecodeStages {
    const T* data;
    int64_t data_stride;
    bool aligned;
    int width, loads;     ///< channels; loads that an entry takes
    int stride, at_once;  ///< of entries in a stage: four of them lie in different banks; entries of a stage

    KVSCOPE_DEVICE DecodeStages(const void* from, int64_t from_stride, bool is_aligned, int channels)
        : data(static_cast<const T*>(from)), data_stride(from_stride), aligned(is_aligned), width(channels) {
        loads = (channels + kPerLoad<T> - 1) / kPerLoad<T>;
        stride = (loads + 4) * kPerLoad<T>;
        at_once = kDecodeStageBytes / static_cast<int>(sizeof(T)) / stride;
    }

    /// Of a stage those of `count` entries.
    KVSCOPE_DEVICE int n_of(int stage, int count) const { return least(at_once, count - stage * at_once); }

    /// Begins to fetch a stage. @param first the piece's first entry
    KVSCOPE_DEVICE void fetch(int t, int n_threads, int stage, int count, int64_t first, T* to) const {
        const T* from = data + (first + stage * at_once) * data_stride;
        const int n = n_of(stage, count) * loads;
        for (int i = t; i < n; i += n_threads) {
            const int entry = i / loads, c = i % loads * kPerLoad<T>;
            const T* source = from + entry * data_stride + c;
            if (aligned)
                begin_copy(to + entry * stride + c, source, true);
            else
                store_aligned(to + entry * stride + c, load_some(source, width - c));
        }
    }
};

/// One piece of a row and up to Q of its queries.
template <class Block, class T, int Q>
struct DecodePiece {
    static constexpr int kLanes = 4;    ///< threads that share an entry's key
    static constexpr int kEntries = 2;  ///< that a thread works on at once
    static constexpr int kApart = Block::kThreads / kLanes;
    static constexpr int kPer = kPerLoad<T>;
    using Shared = DecodeShared<T, Q>;
    using Sums = Numbers<float, Q * kPer>;  ///< of a thread's columns

    const DecodeArrays& arrays;
    const DecodePart& part;
    DecodeStages<T> keys, values;
    int first_query, n_queries, count;
    int64_t begin, state;

    KVSCOPE_DEVICE DecodePiece(const DecodeArrays& all, const DecodePass& pass, int64_t block)
        : arrays(all),
          part(all.parts[pass.part]),
          keys(part.row.k, part.row.k_stride, part.aligned_keys, part.row.key_dim),
          values(part.row.v, part.row.v_stride, part.aligned_values, all.head_dim),
          first_query(pass.first_query) {
        const int64_t piece = block - pass.first_block;
        const Range range = piece_of(part.row.n_entries, part.n_pieces, piece);
        begin = range.begin;
        count = static_cast<int>(range.end - range.begin);
        n_queries = least(Q, part.row.n_queries - first_query);
        state = part.state + piece * part.row.n_queries + first_query;
    }

    /// A stage is multiplied while the next one is on its way, the first of the values' while the keys' logits become
    /// weights.
    KVSCOPE_DEVICE void attend(Block& block, Shared& shared) const {
        const int n_keys = (count + keys.at_once - 1) / keys.at_once;
        const int n = n_keys + (count + values.at_once - 1) / values.at_once;
        const auto fetch = [&](int t, int stage) {
            T* to = shared.stages[stage % 2];
            if (stage < n_keys)
                keys.fetch(t, Block::kThreads, stage, count, begin, to);
            else if (stage < n)
                values.fetch(t, Block::kThreads, stage - n_keys, count, begin, to);
            commit_copies();
        };
        Own<Block, Sums> sums;
        block.registers([&](int t) {
            fetch(t, 0);
            fetch(t, 1);
            sums[t] = {};
        });
        read_queries(block, shared);
        KVSCOPE_UNROLL_BY(1)
        for (int stage = 0; stage < n; ++stage) {
            block.threads([](int) { wait_for_copies<1>(); });
            const T* held = shared.stages[stage % 2];
            if (stage < n_keys)
                logits(block, stage, held, shared);
            else
                block.registers([&](int t) { add_values(t, stage - n_keys, held, shared, sums[t]); });
            block.threads([](int) {});
            block.registers([&](int t) { fetch(t, stage + 2); });
            if (stage == n_keys - 1) weigh(block, shared);
        }
        write_values(block, sums, shared);
    }

    /// Zeros behind their channels, and in place of queries that are not there.
    KVSCOPE_DEVICE void read_queries(Block& block, Shared& shared) const {
        const T* q = static_cast<const T*>(part.row.q) + first_query * part.row.q_stride;
        block.threads([&](int t) {
            for (int i = 0; i < Q; ++i)
                for (int c = t; c < keys.loads * kPer; c += Block::kThreads) {
                    const bool exists = i < n_queries && c < part.row.key_dim;
                    shared.queries[i][c] = exists ? to_float(q[i * part.row.q_stride + c]) : 0.0f;
                }
        });
    }

    KVSCOPE_DEVICE void logits(Block& block, int stage, const T* held, Shared& shared) const {
        const float scale = arrays.scale * kLog2E;
        const int n = keys.n_of(stage, count);
        Own<Block, Numbers<float, kEntries * Q>> sums;
        KVSCOPE_UNROLL_BY(1)
        for (int first = 0; first < n; first += kEntries * kApart) {
            block.registers([&](int t) { multiply_keys(held, n, shared, first + t / kLanes, t % kLanes, sums[t]); });
            KVSCOPE_UNROLL
            for (int step = kLanes / 2; step > 0; step /= 2) block.join_lanes(sums, step, Add{});
            block.registers([&](int t) {
                KVSCOPE_UNROLL
                for (int i = 0; i < kEntries * Q; ++i) {
                    const int entry = first + t / kLanes + i / Q * kApart;
                    // One thread alone where there are few: ptxas would index the others' choice in local memory.
                    const int writer = Q <= 2 ? 0 : i % kLanes;
                    if (t % kLanes == writer && entry < n)
                        shared.weights[(stage * keys.at_once + entry) * Q + i % Q] = sums[t][i] * scale;
                }
            });
        }
    }

    /// Of entries `first`, first + kApart, ... the products of every kLanes-th load.
    KVSCOPE_DEVICE void multiply_keys(const T* held, int n, const Shared& shared, int first, int lane,
                                      Numbers<float, kEntries * Q>& sums) const {
        sums = {};
        KVSCOPE_UNROLL_BY(1)
        for (int c = lane * kPer; c < keys.loads * kPer; c += kLanes * kPer) {
            Numbers<Loaded<T>, kEntries> loaded;
            KVSCOPE_UNROLL
            for (int e = 0; e < kEntries; ++e)  // a repeated last one is not written
                loaded[e] = load_aligned(held + least(first + e * kApart, n - 1) * keys.stride + c);
            KVSCOPE_UNROLL
            for (int i = 0; i < Q; ++i) {
                KVSCOPE_UNROLL
                for (int four = 0; four < kPer; four += 4) {
                    const Loaded<float> query = load_aligned(&shared.queries[i][c + four]);
                    KVSCOPE_UNROLL
                    for (int j = 0; j < 4; ++j) {
                        KVSCOPE_UNROLL
                        for (int e = 0; e < kEntries; ++e)
                            sums[e * Q + i] = multiply_add(query[j], loaded[e][four + j], sums[e * Q + i]);
                    }
                }
            }
        }
    }

    /// Logits to 2^(logit - largest), a warp for each query.
    KVSCOPE_DEVICE void weigh(Block& block, Shared& shared) const {
        constexpr int kWarps = Block::kThreads / 32;
        Own<Block, float> largest, total;
        for (int first = 0; first < n_queries; first += kWarps) {
            block.registers([&](int t) {
                largest[t] = kLowest;
                const int query = first + t / 32;
                if (query >= n_queries) return;
                for (int j = t % 32; j < count; j += 32) largest[t] = most(largest[t], shared.weights[j * Q + query]);
            });
            KVSCOPE_UNROLL
            for (int step = 16; step > 0; step /= 2) block.join_lanes(largest, step, Most{});
            block.registers([&](int t) {
                const int query = first + t / 32;
                total[t] = query < n_queries ? weigh_query(shared, query, t % 32, largest[t]) : 0.0f;
            });
            KVSCOPE_UNROLL
            for (int step = 16; step > 0; step /= 2) block.join_lanes(total, step, Add{});
            block.registers([&](int t) {
                const int query = first + t / 32;
                if (t % 32 != 0 || query >= n_queries) return;
                arrays.largest[state + query] = largest[t];
                arrays.total[state + query] = total[t];
            });
        }
        block.threads([](int) {});
    }

    /// Every 32nd entry; returns the sum of their weights.
    KVSCOPE_DEVICE float weigh_query(Shared& shared, int query, int lane, float largest) const {
        const DecodeRow& row = part.row;
        const float* n = row.cardinality ? row.cardinality + begin : nullptr;
        float* attention =
            row.attention ? row.attention + (first_query + query) * row.attention_stride + begin : nullptr;
        float total = 0;
        for (int j = lane; j < count; j += 32) {
            float& weight = shared.weights[j * Q + query];
            weight = power_of_two(weight - largest);
            const float counted = n ? product_of(weight, n[j]) : weight;
            if (attention) attention[j] = counted;
            total += counted;
        }
        return total;
    }

    /// Threads that have a column of a stage's entries each: kPer channels of every groups-th entry.
    KVSCOPE_DEVICE int n_groups() const { return Block::kThreads / values.loads; }

    KVSCOPE_DEVICE void add_values(int t, int stage, const T* held, const Shared& shared, Sums& sums) const {
        const int groups = n_groups(), n = values.n_of(stage, count), group = t / values.loads;
        if (group >= groups) return;
        const T* column = held + t % values.loads * kPer;
        const float* weights = shared.weights + stage * values.at_once * Q;
        KVSCOPE_UNROLL_BY(2)
        for (int j = group; j < n; j += groups) {
            const Loaded<T> value = load_aligned(column + j * values.stride);
            const Numbers<float, Q> of_entry = weights_at(weights + j * Q);
            KVSCOPE_UNROLL
            for (int i = 0; i < Q; ++i) {
                KVSCOPE_UNROLL
                for (int c = 0; c < kPer; ++c)
                    sums[i * kPer + c] = multiply_add(of_entry[i], value[c], sums[i * kPer + c]);
            }
        }
    }

    /// Of an entry one for each query.
    KVSCOPE_DEVICE static Numbers<float, Q> weights_at(const float* p) {
        Numbers<float, Q> found;
        if constexpr (Q % 4 == 0) {
            KVSCOPE_UNROLL
            for (int i = 0; i < Q; i += 4) {
                const Loaded<float> four = load_aligned(p + i);
                KVSCOPE_UNROLL
                for (int j = 0; j < 4; ++j) found[i + j] = four[j];
            }
        } else {
            KVSCOPE_UNROLL
            for (int i = 0; i < Q; ++i) found[i] = p[i];
        }
        return found;
    }

    /// Adds up what the groups have.
    KVSCOPE_DEVICE void write_values(Block& block, Own<Block, Sums>& sums, Shared& shared) const {
        const int d = arrays.head_dim, loads = values.loads;
        block.threads([](int) { wait_for_copies<0>(); });
        KVSCOPE_UNROLL_BY(1)
        for (int n = n_groups(), half = 0; n > 1; n = half) {
            half = (n + 1) / 2;
            block.threads([&](int t) {
                const int slot = t - half * loads;
                if (slot < 0 || t >= n * loads) return;
                KVSCOPE_UNROLL
                for (int i = 0; i < Q * kPer; ++i) shared.reduced[i * (Block::kThreads / 2) + slot] = sums[t][i];
            });
            block.threads([&](int t) {
                if (t >= (n - half) * loads) return;
                KVSCOPE_UNROLL
                for (int i = 0; i < Q * kPer; ++i) sums[t][i] += shared.reduced[i * (Block::kThreads / 2) + t];
            });
        }
        block.registers([&](int t) {
            if (t >= loads) return;
            KVSCOPE_UNROLL
            for (int i = 0; i < Q; ++i) {
                KVSCOPE_UNROLL
                for (int j = 0; j < kPer; ++j)
                    if (i < n_queries && t * kPer + j < d)
                        arrays.values[(state + i) * d + t * kPer + j] = sums[t][i * kPer + j];
            }
        });
    }
};

struct DecodeCombineShared {
    float reduced[kDecodeThreads];
    float factors[kDecodeThreads];
};

/// Joins the pieces of one query of a chain. Leaves each piece's factor in place of its largest logit.
template <class T, class Block>
KVSCOPE_DEVICE void combine_decode(Block& block, const DecodeArrays& arrays, const DecodeChain& chain, int query,
                                   DecodeCombineShared& shared) {
    constexpr int kColumns = kDecodeMostDim / Block::kThreads;
    const int64_t n = chain.n_pieces;
    const auto at = [&](int64_t piece) { return chain.state + piece * chain.n_queries + query; };
    Own<Block, float> whole, inverse;
    block.threads([&](int t) {
        float x = kLowest;
        for (int64_t s = t; s < n; s += Block::kThreads) x = most(x, arrays.largest[at(s)]);
        shared.reduced[t] = x;
    });
    join_threads(block, shared.reduced, Most{});
    block.threads([&](int t) { whole[t] = shared.reduced[0]; });
    block.threads([&](int t) {
        float x = 0;
        for (int64_t s = t; s < n; s += Block::kThreads)
            x += arrays.total[at(s)] * power_of_two(arrays.largest[at(s)] - whole[t]);
        shared.reduced[t] = x;
    });
    join_threads(block, shared.reduced, Add{});
    Own<Block, Numbers<float, kColumns>> sums;
    block.registers([&](int t) {
        inverse[t] = 1.0f / shared.reduced[0];
        KVSCOPE_UNROLL
        for (int i = 0; i < kColumns; ++i) sums[t][i] = 0;
    });
    KVSCOPE_UNROLL_BY(1)
    for (int64_t first = 0; first < n; first += Block::kThreads) {
        block.threads([&](int t) {
            if (first + t >= n) return;
            shared.factors[t] = power_of_two(arrays.largest[at(first + t)] - whole[t]) * inverse[t];
            arrays.largest[at(first + t)] = shared.factors[t];
        });
        block.threads([&](int t) {
            const int64_t end = least<int64_t>(n - first, Block::kThreads);
            for (int64_t s = 0; s < end; ++s) {
                const float* values = arrays.values + at(first + s) * arrays.head_dim;
                KVSCOPE_UNROLL
                for (int i = 0; i < kColumns; ++i) {
                    const int c = i * Block::kThreads + t;
                    if (c < arrays.head_dim) sums[t][i] = multiply_add(values[c], shared.factors[s], sums[t][i]);
                }
            }
        });
    }
    block.registers([&](int t) {
        T* out = static_cast<T*>(chain.out) + query * chain.out_stride;
        KVSCOPE_UNROLL
        for (int i = 0; i < kColumns; ++i) {
            const int c = i * Block::kThreads + t;
            if (c < arrays.head_dim) out[c] = from_float<T>(sums[t][i]);
        }
    });
}

/// The weights that a piece left, times what they are of the whole.
template <class Block>
KVSCOPE_DEVICE void scale_decode_weights(Block& block, const DecodeArrays& arrays, const DecodePass& pass,
                                         int64_t block_index, int most_queries) {
    const DecodePart& part = arrays.parts[pass.part];
    const DecodeRow& row = part.row;
    if (!row.attention) return;
    const int64_t piece = block_index - pass.first_block;
    const Range range = piece_of(row.n_entries, part.n_pieces, piece);
    const int end = least(row.n_queries, pass.first_query + most_queries);
    block.registers([&](int t) {
        for (int query = pass.first_query; query < end; ++query) {
            const float factor = arrays.largest[part.state + piece * row.n_queries + query];
            float* weights = row.attention + query * row.attention_stride;
            for (int64_t j = range.begin + t; j < range.end; j += Block::kThreads) weights[j] *= factor;
        }
    });
}

}  // namespace kvscope::kernels::cuda
