#pragma once

#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Causal attention of a chunk of prompt queries over a dense cache that already holds the chunk's own entries.
/// Query at position i sees keys j with i - sliding_window < j <= i. Query head h reads KV head h / (n_heads /
/// n_kv_heads).
struct PrefillAttention {
    DType dtype = DType::bf16;   ///< of q, k, v and out: f32 or bf16
    int n_heads = 0;             ///< H
    int n_kv_heads = 0;          ///< G, a divisor of H
    int head_dim = 0;            ///< d
    float scale = 0;             ///< logits are scale * (q . k); usually 1 / sqrt(d)
    int64_t q_begin = 0;         ///< position of the first query
    int64_t n_queries = 0;       ///< keys and values 0 ... q_begin + n_queries - 1 exist
    int64_t sliding_window = 0;  ///< keys a query sees at most, itself included; 0: all
    /// (n_queries) the first key that each query sees, never falling and none behind its own; in place of
    /// sliding_window, for caches that lack some of the keys. In the processor's memory whatever the device. nullptr:
    /// not given.
    const int64_t* first_keys = nullptr;

    const void* q = nullptr;     ///< (n_queries, H, d); heads are contiguous
    int64_t q_token_stride = 0;  ///< elements between tokens; at least H * d
    const void* k = nullptr;     ///< (G, >= q_begin + n_queries, d), post-RoPE
    const void* v = nullptr;     ///< unused without `out`
    int64_t kv_head_stride = 0;  ///< elements between KV heads, of k and v alike
    /// (q_begin + n_queries) tokens that each entry stands for, the same of all heads:
    /// out = sum exp(e_j) v_j / sum n_j exp(e_j). nullptr: 1 each, bit by bit the same as ones.
    const float* cardinality = nullptr;
    void* out = nullptr;  ///< (n_queries, H, d); must not overlap q; nullptr: the column sums alone are wanted
    int64_t out_token_stride = 0;

    /// (H, column_stride): adds to each key the softmax weights n_j exp(e_j) / sum n exp(e) summed over this chunk's
    /// queries (H2O's score, without an N x N matrix). The weights are those before any rounding to bf16. nullptr: not
    /// wanted.
    double* column_sums = nullptr;
    int64_t column_stride = 0;
};

/// bf16: logits and softmax in f32, weights rounded to bf16 only to be multiplied by the values. f32: all in f32.
/// The result depends on nothing but the arguments and the SIMD level: not on the number of threads.
/// Scratch: a few MB per thread, whatever the prompt's length.
/// @throws std::invalid_argument for sizes that contradict each other or a type that is neither f32 nor bf16.
void attention_prefill(const PrefillAttention& problem);

/// Several problems at once, balanced over the threads together; for example the rows of a ragged cache (n_kv_heads =
/// 1, q_begin = entries the row holds already) that read the same new tokens. No two may share `column_sums`.
void attention_prefill(std::span<const PrefillAttention> problems);

}  // namespace kvscope::kernels
