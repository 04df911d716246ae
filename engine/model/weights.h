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
};

/// How a tensor's rows are held in memory: as the file has them where there is a kernel that reads them so and they
/// take less than numbers of the model's type, else as such numbers.
/// @param stored_type as in checkpoint::TensorInfo
kernels::WeightFormat held_format(const std::string& stored_type, int64_t columns, kernels::DType dtype);

/// Bytes of all of a model's weights in memory, known before they are read.
struct WeightBytes {
    int64_t held = 0;
    int64_t largest = 0;                   ///< of one matrix as numbers, which the prefill writes out one at a time
    std::vector<std::string> written_out;  ///< types of the file without a kernel, whose tensors become numbers
};
WeightBytes weight_bytes(const checkpoint::Checkpoint& checkpoint, kernels::DType dtype);

/// Reads all weights.
/// @throws what `checkpoint` throws for damaged files; Cancelled.
Weights load_weights(const checkpoint::Checkpoint& checkpoint, kernels::DType dtype, Progress& progress);

}  // namespace kvscope::engine
