#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/cache/dense_cache.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Consecutive tokens of one prompt, for causal attention.
struct PromptAttention {
    int64_t row = 0;  ///< row of the first token in `qkv`
    int64_t n = 0;
    int64_t first = 0;       ///< entry of the layer's cache that belongs to the first token
    double* sums = nullptr;  ///< (H, sums_stride) the attention weights are added to; nullptr if not needed
    int64_t sums_stride = 0;
    bool sums_alone = false;  ///< compute the sums only
};

/// Computes causal attention of queries, keys and values (…, (H + 2G) d) after RoPE.
/// @returns (n, H d), before the output projection; undefined if `sums_alone`
at::Tensor attend(const Transformer& model, int layer, const at::Tensor& qkv, const DenseLayer& dense,
                  const PromptAttention& tokens);

}  // namespace kvscope::engine
