#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Pseudo tokens that follow the prompt for some runs only.
struct Tail {
    std::vector<int32_t> ids;
    std::vector<int64_t> positions;
};

/// Runs tails through a model layer by layer, each as if no other tail followed the prompt.
class PseudoTokenPass {
 public:
    PseudoTokenPass(const Transformer& model, std::span<const Tail> tails);

    [[nodiscard]] int64_t capacity() const { return capacity_; }

    struct Projections {
        at::Tensor plain;  ///< (n, H d) queries before RoPE
        at::Tensor qkv;    ///< (n, (H + 2G) d) after RoPE
    };

    /// Computes one layer for one tail. Call it for the layers in order. The tail's tokens attend to the prompt's
    /// entries and to the tail's earlier tokens. The next tail overwrites this tail's entries.
    [[nodiscard]] Projections run_layer(int layer, size_t tail, DenseLayer& dense, int64_t n_tokens);

 private:
    const Transformer& model_;
    int64_t capacity_ = 0;
    std::vector<at::Tensor> residuals_;
    std::vector<Transformer::Rotation> rotations_;
};

}  // namespace kvscope::engine
