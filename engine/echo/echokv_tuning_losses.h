#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "engine/model/transformer.h"
#include "policies/methods/echo_maps.h"

namespace kvscope::engine {

/// Losses for tuning EchoKV's maps. A rebuilt layer gets its inputs from the uncompressed model.
enum class EchoLoss {
    keys_values,  ///< first stage: squared error of rebuilt keys (before RoPE) and values
    outputs,      ///< second stage: squared error of attention outputs with rebuilt keys and values
    qk_kl         ///< KL(A || A~) of attention with true keys A and rebuilt keys A~; needs no values
};

[[nodiscard]] std::string_view echo_loss_name(EchoLoss loss);

struct EchoSequence {
    at::Tensor keys = {};     ///< (n, D) before RoPE
    at::Tensor values = {};   ///< (n, D)
    at::Tensor queries = {};  ///< (n, H d) after RoPE; not needed for keys_values
};

struct EchoLayerLoss {
    double loss = 0;
    double scale = 0;  ///< mean square of the reference values; 1 for qk_kl
    at::Tensor keys_gradient = {}, values_gradient = {};
};

struct EchoLossSetup {
    const Transformer& model;
    policies::EchoLayout layout{};
    EchoLoss loss = EchoLoss::outputs;
    int64_t skipped = 0;  ///< number of tokens at the start of a sequence that stay exact
};

/// Computes a layer's loss over one sequence, bit-identical for any number of threads.
/// @param first keys and values of the group's first layer
/// @param keys_map, values_map (outputs, inputs) f32, contiguous
[[nodiscard]] EchoLayerLoss compute_layer_loss(const EchoLossSetup& setup, int layer, const EchoSequence& first,
                                               const EchoSequence& own, const at::Tensor& keys_map,
                                               const at::Tensor& values_map, bool with_gradients);

}  // namespace kvscope::engine
