#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Consecutive queries of all query heads of one KV head: a work item of prefill or window attention. Query i, at p =
/// q_position + i, sees keys j < key_end with p - sliding_window < j <= p.
struct AttentionBlock {
    int group = 0;  ///< number of query heads
    int head_dim = 0;
    float scale = 0;
    int64_t sliding_window = 0;
    int64_t q_position = 0;
    int64_t n_queries = 0;
    int64_t key_end = 0;
    /// (n_queries) first key that each query sees, or nullptr. Replaces sliding_window. Values never decrease.
    const int64_t* first_keys = nullptr;

    DType q_dtype = DType::f32;
    const void* q = nullptr;
    int64_t q_token_stride = 0, q_head_stride = 0;

    DType kv_dtype = DType::f32;
    const void* k = nullptr;  ///< (key_end, d)
    const void* v = nullptr;  ///< (key_end, d); not needed if `out` is nullptr
    /// (key_end) factor of each key in the softmax's denominator, or nullptr if all are 1.
    const float* cardinality = nullptr;

    DType out_dtype = DType::f32;
    void* out = nullptr;  ///< nullptr if not needed
    int64_t out_token_stride = 0, out_head_stride = 0;

    /// (group, column_stride) or nullptr. Receives each key's weights exp(e) / sum n exp(e), summed over the queries.
    float* column_sums = nullptr;
    int64_t column_stride = 0;
};

/// Block functions of one SIMD level, in f32 arithmetic. Only avx512_bf16 multiplies bf16 inputs directly.
struct AttentionBlockKernel {
    /// Returns the largest number of queries per block. Blocks of this size are also the fastest.
    int (*queries_per_block)(int group);
    /// Returns the smallest number of queries that fills the registers.
    int (*fewest_queries)(int group);
    /// Returns the bytes of scratch (64-byte aligned) that compute() needs for blocks up to these sizes.
    size_t (*scratch_bytes)(int group, int head_dim, int64_t n_keys, bool column_sums);
    void (*compute)(const AttentionBlock& block, void* scratch);
};

/// Returns the first key that a query of the block sees. It never decreases from query to query.
[[nodiscard]] inline int64_t first_visible_key(const AttentionBlock& block, int64_t query = 0) {
    if (block.first_keys != nullptr) return block.first_keys[query];
    const int64_t first = block.sliding_window > 0 ? block.q_position + query - block.sliding_window + 1 : 0;
    return first > 0 ? first : 0;
}

}  // namespace kvscope::kernels
