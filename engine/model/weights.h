#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/common/progress.h"
#include "engine/model/matrix.h"
#include "kernels/types.h"

namespace kvscope::engine {

/// Weights of one layer. Members that the model family lacks are undefined.
struct LayerWeights {
    at::Tensor input_norm;      ///< (hidden) f32
    Matrix qkv;                 ///< ((H + 2G) d, hidden) queries, keys and values, stacked for one product
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
    Matrix head;            ///< (vocabulary, hidden); the embedding itself if both are tied
    std::vector<LayerWeights> layers;

    [[nodiscard]] Weights on(const ComputeDevice& device) const;
};

/// @throws exceptions of `checkpoint` for damaged files
[[nodiscard]] Weights load_weights(const checkpoint::Checkpoint& checkpoint, kernels::DType dtype, Progress& progress);

}  // namespace kvscope::engine
