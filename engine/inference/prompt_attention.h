#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/cache/dense_cache.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Causal attention of consecutive tokens of one prompt.
struct PromptAttention {
    int64_t row = 0;  ///< of `qkv`, the first token's
    int64_t n = 0;
    int64_t first = 0;       ///< the entry of the layer's cache that is the first token's own
    double* sums = nullptr;  ///< (H, sums_stride) the weights are added to; nullptr: not asked for
    int64_t sums_stride = 0;
    bool sums_alone = false;  ///< the attention's own result is not wanted
};

/// @param qkv rotated queries, keys and values (…, (H + 2G) d)
/// @returns (n, H d), before the output projection; undefined where the sums alone are wanted
at::Tensor attend(const Transformer& model, int layer, const at::Tensor& qkv, const DenseLayer& dense,
                  const PromptAttention& tokens);

}  // namespace kvscope::engine
