#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Pseudo tokens put behind the prompt for some runs only.
struct Tail {
    std::vector<int32_t> ids;
    std::vector<int64_t> positions;
};

/// The way of tails through a model, layer by layer, each of them as if it alone stood behind the prompt. Holds their
/// residual streams.
class TailPass {
 public:
    TailPass(const Transformer& model, std::span<const Tail> tails);

    /// Entries that the longest tail needs behind the prompt's.
    int64_t capacity() const { return capacity_; }

    struct Projections {
        at::Tensor plain;  ///< (n, H d) queries before the rotation
        at::Tensor qkv;    ///< (n, (H + 2G) d) rotated
    };

    /// Takes a tail through a layer; a tail's layers come in their order. Its tokens attend to the prompt's n_tokens
    /// entries and, causally, to one another, wherever their positions lie. Their own entries are written behind the
    /// prompt's, where the next tail overwrites them.
    Projections run_layer(int layer, size_t tail, DenseLayer& dense, int64_t n_tokens);

 private:
    const Transformer& model_;
    int64_t capacity_ = 0;
    std::vector<at::Tensor> residuals_;
    std::vector<Transformer::Rotation> rotations_;
};

}  // namespace kvscope::engine
