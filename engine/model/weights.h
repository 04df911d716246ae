#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/common/progress.h"
#include "engine/model/matrix.h"
#include "kernels/types.h"

namespace kvscope::engine {

/// One layer's weights; norms and biases in f32. Undefined where the family has none.
struct LayerWeights {
    at::Tensor input_norm;      ///< (hidden) f32
    Matrix qkv;                 ///< ((H + 2G) d, hidden): queries, keys, values stacked, so that one product makes all
    at::Tensor qkv_bias;        ///< ((H + 2G) d) f32
    at::Tensor q_norm, k_norm;  ///< (d) f32
    Matrix output;              ///< (hidden, H d)
    at::Tensor output_bias;     ///< (hidden) f32
    at::Tensor mlp_norm;        ///< (hidden) f32
    Matrix gate_up;             ///< (2 intermediate, hidden)
    at::Tensor gate_up_bias;    ///< (2 intermediate) f32
    Matrix down;                ///< (hidden, intermediate)
    at::Tensor down_bias;       ///< (hidden) f32
};

struct Weights {
    Matrix embedding;       ///< (vocabulary, hidden)
    at::Tensor final_norm;  ///< (hidden) f32
    Matrix head;            ///< (vocabulary, hidden); the embedding itself where they are tied
    std::vector<LayerWeights> layers;

    /// The same on another device. @throws what libtorch throws where there is no room
    Weights on(const ComputeDevice& device) const;
};

/// Reads all weights.
/// @throws what `checkpoint` throws for damaged files; Cancelled.
Weights load_weights(const checkpoint::Checkpoint& checkpoint, kernels::DType dtype, Progress& progress);

}  // namespace kvscope::engine
