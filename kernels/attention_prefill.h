#pragma once

#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Causal attention of a chunk of prompt queries. The dense cache already contains the chunk's own entries. The query
/// at position i sees keys j with i - sliding_window < j <= i. Query head h reads KV head h / (n_heads / n_kv_heads).
struct PrefillAttention {
    DType dtype = DType::bf16;   ///< type of q, k, v and out: f32 or bf16
    int n_heads = 0;             ///< number of query heads, H
    int n_kv_heads = 0;          ///< number of KV heads, G, a divisor of H
    int head_dim = 0;            ///< head size, d
    float scale = 0;             ///< logits are scale * (q . k); usually 1 / sqrt(d)
    int64_t q_begin = 0;         ///< position of the first query
    int64_t n_queries = 0;       ///< the cache has q_begin + n_queries entries
    int64_t sliding_window = 0;  ///< largest number of keys that a query sees, its own included; 0 means all
    /// (n_queries) position of the first key that each query sees, or nullptr. Positions never decrease and are at most
    /// the query's own position. The array is in host memory and requires sliding_window = 0.
    const int64_t* first_keys = nullptr;

    const void* q = nullptr;     ///< (n_queries, H, d); the heads of a token are contiguous
    int64_t q_token_stride = 0;  ///< elements between tokens; at least H * d
    const void* k = nullptr;     ///< (G, >= q_begin + n_queries, d), post-RoPE
    const void* v = nullptr;     ///< not needed if `out` is nullptr
    int64_t kv_head_stride = 0;  ///< elements between KV heads, for k and v
    /// (q_begin + n_queries) number n_j of tokens in each entry; nullptr if each entry holds one token.
    /// The output is sum_j exp(e_j) v_j / sum_j n_j exp(e_j).
    const float* cardinality = nullptr;
    void* out = nullptr;  ///< (n_queries, H, d); must not overlap q; nullptr to compute only column_sums
    int64_t out_token_stride = 0;

    /// (H, column_stride) or nullptr. The softmax weights n_j exp(e_j) / sum n exp(e) of this call's queries are added
    /// here, before any rounding to bf16 (H2O's score).
    double* column_sums = nullptr;
    int64_t column_stride = 0;
};

/// With bf16, weights are rounded to bf16 only for the product with the values; all other arithmetic is f32. The result
/// depends on the SIMD level but not on the number of threads.
/// Throws std::invalid_argument for contradictory sizes or a type other than f32 and bf16.
void attention_prefill(const PrefillAttention& problem);

/// Computes attention for several problems, e.g. the rows of a ragged cache (n_kv_heads = 1). Problems must not share
/// `column_sums`.
void attention_prefill(std::span<const PrefillAttention> problems);

}  // namespace kvscope::kernels
