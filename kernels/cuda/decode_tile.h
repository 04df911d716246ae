#pragma once

#include "kernels/attention_decode.h"
#include "kernels/cuda/tile.h"

/// Decode attention, one block per piece of a row. Only the row's length determines the pieces and their order.
namespace kvscope::kernels::cuda {

inline constexpr int decode_threads = 128;
inline constexpr int decode_piece_entries = 256;  ///< largest number of entries per piece
inline constexpr int decode_most_dim = 256;       ///< largest number of channels of keys and values
inline constexpr int64_t decode_most_entries = 0x7fffffff;
inline constexpr int decode_most_queries = 8;         ///< largest number of queries per block
inline constexpr int decode_staged_bytes = 32 << 10;  ///< bytes of values that load while keys are multiplied

/// A row with its strides filled in.
struct DecodePart {
    DecodeRow row;
    int64_t n_pieces;
    int64_t state;  ///< first of the row's (n_pieces, n_queries) states
    int64_t chain;
    bool aligned_keys, aligned_values;
};

/// A group of a row's queries. One thread block computes them for each piece of the row.
struct DecodePass {
    int64_t part;
    int first_query;
    int64_t first_block;
};

/// A row and its continuations. The last block to finish joins the results.
struct DecodeChain {
    int64_t state, n_pieces;
    int n_queries;
    void* out;
    int64_t out_stride;
    int n_blocks;
    int arrived;  ///< number of blocks that have finished
};

struct DecodeArrays {
    const DecodePart* parts;
    DecodeChain* chains;
    int head_dim;
    float scale;
    float* largest;  ///< (states); after join_pieces() the factor of the piece's weights
    float* total;    ///< (states)
    float* values;   ///< (states, d)
};

struct PieceOfRow {
    const DecodeArrays& arrays;
    const DecodePart& part;
    int first_query, n_queries, count, begin;
    int64_t state;

    KVSCOPE_DEVICE PieceOfRow(const DecodeArrays& all, const DecodePass& pass, int64_t block, int most_queries)
        : arrays(all), part(all.parts[pass.part]), first_query(pass.first_query) {
        const int64_t piece = block - pass.first_block;
        const Range range = chunk_range(part.row.n_entries, part.n_pieces, piece);
        begin = static_cast<int>(range.begin);
        count = static_cast<int>(range.end - range.begin);
        n_queries = min_of_two(most_queries, part.row.n_queries - first_query);
        state = part.state + piece * part.row.n_queries + first_query;
    }
};

template <class T, int Q>
struct DecodeShared {
    float queries[Q][decode_most_dim];
    float weights[decode_piece_entries * Q];  ///< (entry, query)
    float reduced[decode_threads / 2 * Q * elements_per_load<T>];
    alignas(16) T staged[decode_staged_bytes / sizeof(T)];  ///< (entry, channel): values of the first entries
};

template <class Block, class T, int Q>
struct DecodePiece : PieceOfRow {
    static constexpr int lanes_of_entry = 4;   ///< threads that share an entry's key
    static constexpr int entries_at_once = 4;  ///< entries per thread and round
    static constexpr int entries_apart = Block::block_threads / lanes_of_entry;
    static constexpr int elements_of_load = elements_per_load<T>;
    using Shared = DecodeShared<T, Q>;

    KVSCOPE_DEVICE DecodePiece(const DecodeArrays& all, const DecodePass& pass, int64_t block)
        : PieceOfRow(all, pass, block, Q) {}

    KVSCOPE_DEVICE void attend(Block& block, Shared& shared) const {
        stage_values(block, shared);
        read_queries(block, shared);
        if (part.aligned_keys)
            logits<true>(block, shared);
        else
            logits<false>(block, shared);
        weigh(block, shared);
        if (part.aligned_values)
            sum_values<true>(block, shared);
        else
            sum_values<false>(block, shared);
    }

    KVSCOPE_DEVICE int n_staged() const {
        const int fit = decode_staged_bytes / static_cast<int>(sizeof(T)) / arrays.head_dim;
        return part.aligned_values ? min_of_two(count, fit) : 0;
    }

    KVSCOPE_DEVICE void stage_values(Block& block, Shared& shared) const {
        const int d = arrays.head_dim, loads = d / elements_of_load, n = n_staged();
        const T* v = static_cast<const T*>(part.row.v) + int64_t{begin} * part.row.v_stride;
        block.registers([&](int t) {
            for (int i = t; i < n * loads; i += Block::block_threads) {
                const int entry = i / loads, c = i % loads * elements_of_load;
                begin_copy(shared.staged + entry * d + c, v + entry * part.row.v_stride + c, true);
            }
            commit_copies();
        });
    }

    KVSCOPE_DEVICE void read_queries(Block& block, Shared& shared) const {
        const T* q = static_cast<const T*>(part.row.q) + first_query * part.row.q_stride;
        const int width = static_cast<int>(divide_rounding_up(part.row.key_dim, elements_of_load)) * elements_of_load;
        block.threads([&](int t) {
            for (int i = 0; i < Q; ++i)
                for (int c = t; c < width; c += Block::block_threads) {
                    const bool exists = i < n_queries && c < part.row.key_dim;
                    shared.queries[i][c] = exists ? to_float(q[i * part.row.q_stride + c]) : 0.0f;
                }
        });
    }

    template <bool aligned>
    KVSCOPE_DEVICE void logits(Block& block, Shared& shared) const {
        const float scale = arrays.scale * log2_e;
        Own<Block, Numbers<float, entries_at_once * Q>> sums;
        for (int first = 0; first < count; first += entries_at_once * entries_apart) {
            block.registers([&](int t) {
                multiply_keys<aligned>(shared, first + t / lanes_of_entry, t % lanes_of_entry, sums[t]);
            });
            KVSCOPE_UNROLL
            for (int step = lanes_of_entry / 2; step > 0; step /= 2) block.join_lanes(sums, step, Add{});
            block.registers([&](int t) {
                KVSCOPE_UNROLL
                for (int i = 0; i < entries_at_once * Q; ++i) {
                    const int entry = first + t / lanes_of_entry + i / Q * entries_apart;
                    // For Q == 1 lane 0 always writes, because ptxas would keep an indexed choice in local memory.
                    const int writer = Q == 1 ? 0 : i % lanes_of_entry;
                    if (t % lanes_of_entry == writer && entry < count)
                        shared.weights[entry * Q + i % Q] = sums[t][i] * scale;
                }
            });
        }
        block.threads([](int) {});
    }

    /// Multiplies the queries with a lane's part of the keys of entries `first`, first + entries_apart, ...
    template <bool aligned>
    KVSCOPE_DEVICE void multiply_keys(const Shared& shared, int first, int lane,
                                      Numbers<float, entries_at_once * Q>& sums) const {
        const DecodeRow& row = part.row;
        const T* k = static_cast<const T*>(row.k) + begin * row.k_stride;
        KVSCOPE_UNROLL
        for (int i = 0; i < entries_at_once * Q; ++i) sums[i] = 0;
        for (int c = lane * elements_of_load; c < row.key_dim; c += lanes_of_entry * elements_of_load) {
            Numbers<Loaded<T>, entries_at_once> keys;
            KVSCOPE_UNROLL
            for (int e = 0; e < entries_at_once; ++e) {
                const int entry =
                    min_of_two(first + e * entries_apart, count - 1);  // a repeated last entry is not written
                keys[e] = load_elements<aligned>(k + entry * row.k_stride + c, row.key_dim - c);
            }
            KVSCOPE_UNROLL
            for (int i = 0; i < Q; ++i) {
                KVSCOPE_UNROLL
                for (int j = 0; j < elements_of_load; ++j) {
                    const float query = shared.queries[i][c + j];
                    KVSCOPE_UNROLL
                    for (int e = 0; e < entries_at_once; ++e)
                        sums[e * Q + i] = multiply_add(query, keys[e][j], sums[e * Q + i]);
                }
            }
        }
    }

    KVSCOPE_DEVICE void weigh(Block& block, Shared& shared) const {
        constexpr int n_warps = Block::block_threads / 32;
        Own<Block, float> largest, total;
        for (int first = 0; first < n_queries; first += n_warps) {
            block.registers([&](int t) {
                largest[t] = lowest_maximum;
                const int query = first + t / 32;
                if (query >= n_queries) return;
                for (int j = t % 32; j < count; j += 32)
                    largest[t] = max_of_two(largest[t], shared.weights[j * Q + query]);
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
        block.threads([](int) { wait_for_copies<0>(); });
    }

    /// Computes the weights of every 32nd entry. Returns their sum.
    KVSCOPE_DEVICE float weigh_query(Shared& shared, int query, int lane, float largest) const {
        const DecodeRow& row = part.row;
        const float* n = row.cardinality ? row.cardinality + begin : nullptr;
        float* attention =
            row.attention ? row.attention + (first_query + query) * row.attention_stride + begin : nullptr;
        float total = 0;
        for (int j = lane; j < count; j += 32) {
            float& weight = shared.weights[j * Q + query];
            weight = exp2_of(weight - largest);
            const float counted = n ? multiply_rounded(weight, n[j]) : weight;
            if (attention) attention[j] = counted;
            total += counted;
        }
        return total;
    }

    /// Sums weighted values. Each thread sums a few columns of some entries. Then the sums of all threads are added.
    template <bool aligned>
    KVSCOPE_DEVICE void sum_values(Block& block, Shared& shared) const {
        const int d = arrays.head_dim, chunks = static_cast<int>(divide_rounding_up(d, elements_of_load));
        const int groups = Block::block_threads / chunks;
        Own<Block, Numbers<float, Q * elements_of_load>> sums;
        block.registers([&](int t) {
            KVSCOPE_UNROLL
            for (int i = 0; i < Q * elements_of_load; ++i) sums[t][i] = 0;
            if (t / chunks < groups)
                add_values<aligned>(shared, t / chunks, groups, t % chunks * elements_of_load, sums[t]);
        });
        KVSCOPE_UNROLL_BY(1)
        for (int n = groups, half = 0; n > 1; n = half) {
            half = (n + 1) / 2;
            block.threads([&](int t) {
                const int slot = t - half * chunks;
                if (slot < 0 || t >= n * chunks) return;
                KVSCOPE_UNROLL
                for (int i = 0; i < Q * elements_of_load; ++i)
                    shared.reduced[i * (Block::block_threads / 2) + slot] = sums[t][i];
            });
            block.threads([&](int t) {
                if (t >= (n - half) * chunks) return;
                KVSCOPE_UNROLL
                for (int i = 0; i < Q * elements_of_load; ++i)
                    sums[t][i] += shared.reduced[i * (Block::block_threads / 2) + t];
            });
        }
        block.registers([&](int t) {
            if (t >= chunks) return;
            KVSCOPE_UNROLL
            for (int i = 0; i < Q; ++i) {
                KVSCOPE_UNROLL
                for (int j = 0; j < elements_of_load; ++j)
                    if (i < n_queries && t * elements_of_load + j < d)
                        arrays.values[(state + i) * d + t * elements_of_load + j] = sums[t][i * elements_of_load + j];
            }
        });
    }

    template <bool aligned>
    KVSCOPE_DEVICE void add_values(const Shared& shared, int first, int apart, int column,
                                   Numbers<float, Q * elements_of_load>& sums) const {
        const DecodeRow& row = part.row;
        const T* v = static_cast<const T*>(row.v) + begin * row.v_stride + column;
        const int left = arrays.head_dim - column, staged = n_staged();
        const auto value_of = [&](int entry) {
            if (aligned && entry < staged) return load_aligned(shared.staged + entry * arrays.head_dim + column);
            return load_elements<aligned>(v + entry * row.v_stride, left);
        };
        constexpr int loads_in_flight = 4;  // loads in flight
        for (int j = first; j < count; j += loads_in_flight * apart) {
            Numbers<Loaded<T>, loads_in_flight> values;
            KVSCOPE_UNROLL
            for (int e = 0; e < loads_in_flight; ++e) values[e] = value_of(min_of_two(j + e * apart, count - 1));
            KVSCOPE_UNROLL
            for (int e = 0; e < loads_in_flight; ++e) {
                if (j + e * apart >= count) continue;
                KVSCOPE_UNROLL
                for (int i = 0; i < Q; ++i) {
                    const float weight = shared.weights[(j + e * apart) * Q + i];
                    KVSCOPE_UNROLL
                    for (int c = 0; c < elements_of_load; ++c)
                        sums[i * elements_of_load + c] =
                            multiply_add(weight, values[e][c], sums[i * elements_of_load + c]);
                }
            }
        }
    }
};

/// Joins the pieces of a chain, one warp per query. Replaces each piece's largest logit by the piece's factor.
template <class T, class Block>
KVSCOPE_DEVICE void join_pieces(Block& block, const DecodeArrays& arrays, const DecodeChain& chain) {
    constexpr int n_warps = Block::block_threads / 32,
                  thread_channels = decode_most_dim / 32;  // thread_channels: channels per thread
    const int64_t n = chain.n_pieces, apart = chain.n_queries;
    const int head_dim = arrays.head_dim;
    for (int first = 0; first < chain.n_queries; first += n_warps) {
        Own<Block, float> whole, total;
        const auto query_of = [&](int t) {
            return min_of_two(first + t / 32, chain.n_queries - 1);
        };  // repeats the last query
        const auto state_of = [&](int t, int64_t piece) { return chain.state + piece * apart + query_of(t); };
        const auto factor_of = [&](int t, int64_t piece) {
            return exp2_of(arrays.largest[state_of(t, piece)] - whole[t]);
        };
        block.registers([&](int t) {
            whole[t] = lowest_maximum;
            for (int64_t s = t % 32; s < n; s += 32) whole[t] = max_of_two(whole[t], arrays.largest[state_of(t, s)]);
        });
        KVSCOPE_UNROLL
        for (int step = 16; step > 0; step /= 2) block.join_lanes(whole, step, Most{});
        block.registers([&](int t) {
            total[t] = 0;
            for (int64_t s = t % 32; s < n; s += 32) total[t] += arrays.total[state_of(t, s)] * factor_of(t, s);
        });
        KVSCOPE_UNROLL
        for (int step = 16; step > 0; step /= 2) block.join_lanes(total, step, Add{});
        block.threads([&](int t) {
            const float inverse = 1.0f / total[t];
            Numbers<float, thread_channels> sums;
            KVSCOPE_UNROLL
            for (int i = 0; i < thread_channels; ++i) sums[i] = 0;
            KVSCOPE_UNROLL_BY(4)
            for (int64_t s = 0; s < n; ++s) {
                const float factor = factor_of(t, s) * inverse;
                const float* values = arrays.values + state_of(t, s) * head_dim + t % 32;
                KVSCOPE_UNROLL
                for (int i = 0; i < thread_channels; ++i)
                    if (i * 32 + t % 32 < head_dim) sums[i] = multiply_add(values[i * 32], factor, sums[i]);
            }
            if (first + t / 32 >= chain.n_queries) return;
            T* out = static_cast<T*>(chain.out) + query_of(t) * chain.out_stride;
            KVSCOPE_UNROLL
            for (int i = 0; i < thread_channels; ++i)
                if (i * 32 + t % 32 < head_dim) out[i * 32 + t % 32] = from_float<T>(sums[i]);
        });
        block.registers([&](int t) {
            if (first + t / 32 >= chain.n_queries) return;
            for (int64_t s = t % 32; s < n; s += 32)
                arrays.largest[state_of(t, s)] = factor_of(t, s) * (1.0f / total[t]);
        });
    }
}

/// Ends a block's work on a piece. The chain's last block joins the pieces.
template <class T, class Block>
KVSCOPE_DEVICE void join_if_last(Block& block, const DecodeArrays& arrays, DecodeChain* chain) {
    if (block.is_last(&chain->arrived, chain->n_blocks)) join_pieces<T>(block, arrays, *chain);
}

template <class Block>
KVSCOPE_DEVICE void scale_decode_weights(Block& block, const DecodeArrays& arrays, const DecodePass& pass,
                                         int64_t block_index, int most_queries) {
    const DecodePart& part = arrays.parts[pass.part];
    const DecodeRow& row = part.row;
    if (!row.attention) return;
    const int64_t piece = block_index - pass.first_block;
    const Range range = chunk_range(row.n_entries, part.n_pieces, piece);
    const int end = min_of_two(row.n_queries, pass.first_query + most_queries);
    block.registers([&](int t) {
        for (int query = pass.first_query; query < end; ++query) {
            const float factor = arrays.largest[part.state + piece * row.n_queries + query];
            float* weights = row.attention + query * row.attention_stride;
            for (int64_t j = range.begin + t; j < range.end; j += Block::block_threads) weights[j] *= factor;
        }
    });
}

}  // namespace kvscope::kernels::cuda
