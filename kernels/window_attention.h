#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Mean attention of the window, the last w queries of the prompt, in f32. All arrays are in one device's memory.
struct WindowAttention {
    int n_heads = 0;       ///< number of query heads, H
    int n_kv_heads = 0;    ///< number of KV heads, G, a divisor of H; query head h reads KV head h / (H / G)
    int head_dim = 0;      ///< head size, d
    int window = 0;        ///< w, 1 ... n_tokens; the queries have the positions n_tokens - w ... n_tokens - 1
    int64_t n_tokens = 0;  ///< number of tokens, N
    float scale = 0;       ///< logits are scale * (q . k); 0 means 1 / sqrt(d)

    const float* queries = nullptr;  ///< (H, w, d) post-RoPE
    int64_t query_head_stride = 0;   ///< floats between heads; 0 means w * d
    const void* keys = nullptr;      ///< (G, N, d) post-RoPE
    DType keys_dtype = DType::f32;   ///< f32 or bf16
    int64_t key_head_stride = 0;     ///< elements between KV heads

    /// Whether the softmax covers only the N - w keys before the window. Then `mean` is (H, N - w), else (H, N).
    bool prefix_only = false;
    int64_t sliding_window = 0;  ///< largest number of keys that a query sees, its own included; 0 means all

    float* mean = nullptr;  ///< mean softmax weight over the w queries; 0 for a key that no query sees
};

/// A query adds nothing to the mean if it sees no key, because prefix_only excludes its whole sliding window.
/// Throws std::invalid_argument for contradictory sizes or another type.
void window_attention(const WindowAttention& problem);

/// Computes K-VEC's Eq. 13: each key's largest softmax weight in any KV head, averaged over window queries. A KV head's
/// weight is the mean of its query heads. Writes `mean` (N). Requires prefix_only = false.
/// Throws std::invalid_argument for null arrays, contradictory sizes, or keys that are neither f32 nor bf16.
void window_attention_head_max(const WindowAttention& problem);

}  // namespace kvscope::kernels
