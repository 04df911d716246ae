#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/cache/dense_cache.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

struct PromptAttention {
    int64_t row = 0;  ///< first token's row in `qkv`
    int64_t n = 0;
    int64_t first = 0;       ///< first token's entry in the layer's cache
    double* sums = nullptr;  ///< (H, sums_stride), to which attention weights are added; may be nullptr
    int64_t sums_stride = 0;
    bool sums_alone = false;  ///< compute only the sums
};

/// Computes causal attention for queries, keys and values (…, (H + 2G) d) after RoPE.
/// @returns (n, H d) before the output projection; undefined if `sums_alone` is set
[[nodiscard]] at::Tensor compute_causal_attention(const Transformer& model, int layer, const at::Tensor& qkv,
                                                  const DenseLayer& dense, const PromptAttention& tokens);

}  // namespace kvscope::engine
