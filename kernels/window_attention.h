#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace kvscope::kernels {

/// What the last w prompt queries look at, averaged over them; methods.md, "Window attention".
/// All arithmetic is f32 whatever the keys' type. All arrays lie on the device of the call.
struct WindowAttention {
    int n_heads = 0;       ///< H
    int n_kv_heads = 0;    ///< G, a divisor of H; query head h reads KV head h / (H / G)
    int head_dim = 0;      ///< d
    int window = 0;        ///< w, 1 ... n_tokens; the queries stand at positions n_tokens - w ... n_tokens - 1
    int64_t n_tokens = 0;  ///< N
    float scale = 0;       ///< logits are scale * (q . k); 0 means 1 / sqrt(d)

    const float* queries = nullptr;  ///< (H, w, d) post-RoPE
    int64_t query_head_stride = 0;   ///< floats between heads; 0 means w * d
    const void* keys = nullptr;      ///< (G, N, d) post-RoPE
    DType keys_dtype = DType::f32;   ///< f32 or bf16
    int64_t key_head_stride = 0;     ///< elements between KV heads

    /// false: the softmax runs over all keys visible to a query (causal within the window), mean is (H, N).
    /// true: over the prefix of N - w keys only, mean is (H, N - w).
    bool prefix_only = false;
    int64_t sliding_window = 0;  ///< keys a query sees at most, itself included; 0: all

    float* mean = nullptr;  ///< mean over the w queries of the softmax weights; 0 where a query does not see a key
};

/// A query that sees no key at all (prefix_only with a sliding window within the window) adds nothing to the mean.
/// The result does not depend on the number of threads.
/// @throws std::invalid_argument for sizes that contradict each other or a type that is neither f32 nor bf16;
///         cuda::Unavailable (std::runtime_error) where the device cannot be used, cuda::Failed where it fails.
void window_attention(Device device, const WindowAttention& problem);

}  // namespace kvscope::kernels
