#pragma once

#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace kvscope::kernels {

/// A few queries that read the same entries: the query heads of one KV head of one run, at one decode step. Every query
/// sees every entry.
struct DecodeRow {
    const void* q = nullptr;  ///< (n_queries, d)
    int64_t q_stride = 0;     ///< elements between queries
    int n_queries = 0;

    const void* k = nullptr;  ///< (n_entries, d), post-RoPE
    const void* v = nullptr;
    int64_t kv_stride = 0;  ///< elements between entries, of k and v alike; d where they lie packed
    int64_t n_entries = 0;  ///< at least 1

    /// (n_entries) tokens that each entry stands for: out = sum exp(e_i) v_i / sum n_i exp(e_i). nullptr: 1 each.
    const float* cardinality = nullptr;

    void* out = nullptr;  ///< (n_queries, d); must not overlap q
    int64_t out_stride = 0;

    /// (n_queries, n_entries) n_i exp(e_i) / sum n_j exp(e_j). nullptr: not wanted.
    float* attention = nullptr;
};

/// Attention of all rows at once (all runs x KV heads of a layer), balanced over the threads whatever the rows'
/// lengths; few long rows are split along their entries. dtype is that of q, k, v and out: f32 or bf16; all arithmetic
/// in f32. The result does not depend on the number of threads, nor on what other rows are in the call.
/// @throws std::invalid_argument for an empty row, null arrays, or a type that is neither f32 nor bf16.
void attention_decode(std::span<const DecodeRow> rows, int head_dim, DType dtype, float scale);

}  // namespace kvscope::kernels
