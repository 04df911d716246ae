#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Entries that are worked out when they are read: rotated, summed up of several stored parts, multiplied by a matrix.
class DecodeEntries {
 public:
    virtual ~DecodeEntries() = default;

    // All are called for at most kDecodeTile entries, by several threads at once, and must not throw.

    /// Writes their keys (end - begin, key_dim).
    virtual void read_keys(int64_t begin, int64_t end, float* keys) const = 0;

    /// What sum_values needs for that many queries.
    virtual size_t scratch_floats(int n_queries) const = 0;

    /// Writes out (n_queries, d) = sum over j of weights[query * kDecodeTile + j] times the value of entry begin + j.
    virtual void sum_values(int64_t begin, int64_t end, const float* weights, int n_queries, float* scratch,
                            float* out) const = 0;
};

/// Entries that are worked out at once: a thread's scratch is that many keys, however long the row is.
inline constexpr int64_t kDecodeTile = 128;

/// A few queries that read the same entries: the query heads of one KV head of one run, at one decode step. Every query
/// sees every entry.
struct DecodeRow {
    const void* q = nullptr;  ///< (n_queries, key_dim)
    int64_t q_stride = 0;     ///< elements between queries
    int n_queries = 0;
    int key_dim = 0;  ///< channels of queries and keys; 0: d

    const void* k = nullptr;  ///< (n_entries, key_dim), post-RoPE
    const void* v = nullptr;  ///< (n_entries, d)
    int64_t k_stride = 0;     ///< elements between entries; key_dim where they lie packed
    int64_t v_stride = 0;
    int64_t n_entries = 0;  ///< at least 1
    /// In place of k and v.
    const DecodeEntries* entries = nullptr;

    /// (n_entries) tokens that each entry stands for: out = sum exp(e_i) v_i / sum n_i exp(e_i). nullptr: 1 each.
    const float* cardinality = nullptr;

    /// The row before this one goes on with these entries, which are stored in another way: one softmax over both, into
    /// that row's `out`. The queries are the same, apart from the channels that are looked at.
    bool continues = false;

    void* out = nullptr;  ///< (n_queries, d); must not overlap what any row of the call reads
    int64_t out_stride = 0;

    /// (n_queries, n_entries) n_i exp(e_i) / sum n_j exp(e_j). nullptr: not wanted.
    float* attention = nullptr;
    int64_t attention_stride = 0;  ///< elements between queries; 0: n_entries
};

/// Attention of all rows at once (all runs x KV heads of a layer), balanced over the threads whatever the rows'
/// lengths; few long rows are split along their entries. dtype is that of q, k, v and out: f32 or bf16; all arithmetic
/// in f32. The result does not depend on the number of threads, nor on what other rows are in the call.
/// @throws std::invalid_argument for an empty row, null arrays, or a type that is neither f32 nor bf16.
void attention_decode(std::span<const DecodeRow> rows, int head_dim, DType dtype, float scale);

}  // namespace kvscope::kernels
