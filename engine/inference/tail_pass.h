#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Pseudo tokens that are appended to the prompt for some runs only.
struct Tail {
    std::vector<int32_t> ids;
    std::vector<int64_t> positions;
};

/// Takes tails through a model, layer by layer. Each tail is read as if it were the only one after the prompt.
class TailPass {
 public:
    TailPass(const Transformer& model, std::span<const Tail> tails);

    /// Number of entries that the longest tail needs after the prompt.
    int64_t capacity() const { return capacity_; }

    struct Projections {
        at::Tensor plain;  ///< (n, H d) queries before RoPE
        at::Tensor qkv;    ///< (n, (H + 2G) d) after RoPE
    };

    /// Takes one tail through a layer; must be called for the layers in order. Its tokens attend to the prompt's
    /// n_tokens entries and causally to one another. The next tail overwrites their entries.
    Projections run_layer(int layer, size_t tail, DenseLayer& dense, int64_t n_tokens);

 private:
    const Transformer& model_;
    int64_t capacity_ = 0;
    std::vector<at::Tensor> residuals_;
    std::vector<Transformer::Rotation> rotations_;
};

}  // namespace kvscope::engine
