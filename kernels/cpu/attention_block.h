#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace kvscope::kernels {

/// A run of consecutive queries of all the query heads that read one KV head: the unit of work of the prefill's and of
/// the observation window's attention. Query i stands at position q_position + i and sees keys j with
/// q_position + i - sliding_window < j <= q_position + i and j < key_end.
struct AttentionBlock {
    int group = 0;  ///< query heads
    int head_dim = 0;
    float scale = 0;
    int64_t sliding_window = 0;
    int64_t q_position = 0;
    int64_t n_queries = 0;
    int64_t key_end = 0;
    /// (n_queries) the first key that each query sees, never falling; in place of sliding_window. nullptr: not given.
    const int64_t* first_keys = nullptr;

    DType q_dtype = DType::f32;
    const void* q = nullptr;
    int64_t q_token_stride = 0, q_head_stride = 0;

    DType kv_dtype = DType::f32;
    const void* k = nullptr;  ///< (key_end, d)
    const void* v = nullptr;  ///< (key_end, d); unused without `out`
    /// (key_end) how often each key counts in the softmax's sum; nullptr: once.
    const float* cardinality = nullptr;

    DType out_dtype = DType::f32;
    void* out = nullptr;  ///< nullptr: the output is not wanted
    int64_t out_token_stride = 0, out_head_stride = 0;

    /// (group, column_stride): set to the weights exp(e) / sum n exp(e) summed over the block's queries, for the keys
    /// from the first visible one up to key_end. nullptr: not wanted.
    float* column_sums = nullptr;
    int64_t column_stride = 0;
};

/// How one SIMD level computes blocks. f32 arithmetic; only the avx512_bf16 level multiplies bf16 inputs as they are.
struct AttentionBlockKernel {
    /// Queries that a block should have, and at most has.
    int (*queries_per_block)(int group);
    /// Fewest queries that still fill the registers.
    int (*fewest_queries)(int group);
    /// Bytes that compute() needs at `scratch` (64-byte aligned) for blocks up to these sizes.
    size_t (*scratch_bytes)(int group, int head_dim, int64_t n_keys, bool column_sums);
    void (*compute)(const AttentionBlock& block, void* scratch);
};

/// First key that a query of the block sees; no later one sees any before it.
inline int64_t first_visible_key(const AttentionBlock& block, int64_t query = 0) {
    if (block.first_keys != nullptr) return block.first_keys[query];
    const int64_t first = block.sliding_window > 0 ? block.q_position + query - block.sliding_window + 1 : 0;
    return first > 0 ? first : 0;
}

}  // namespace kvscope::kernels
