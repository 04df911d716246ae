#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "engine/model/transformer.h"
#include "policies/interface/echo_maps.h"

namespace kvscope::engine {

/// What gradient descent on EchoKV's maps makes small, in each rebuilt layer, fed by the uncompressed model. The mean
/// is over tokens and numbers, or tokens and heads.
enum class EchoLoss {
    keys_values,  ///< squared error of the rebuilt keys (before RoPE), and of the rebuilt values: the first stage
    outputs,      ///< squared difference of attention's outputs with true and with rebuilt keys and values: the second
    qk_kl         ///< KL(A || A~), A the attention with true keys, A~ with rebuilt ones; says nothing of the values
};

/// "keys-values", "outputs", "qk-kl"
std::string_view name_of(EchoLoss loss);

/// What a layer has of a sequence of n tokens, f32.
struct EchoSequence {
    at::Tensor keys = {};     ///< (n, D) before RoPE
    at::Tensor values = {};   ///< (n, D)
    at::Tensor queries = {};  ///< (n, H d) rotated; keys_values needs none
};

/// Of a layer's two maps. The gradients are (outputs, inputs) each, undefined where none was asked for or a map does
/// not come into the loss.
struct EchoLayerLoss {
    double loss = 0;
    double scale = 0;  ///< mean square of what is compared with; 1 for qk_kl
    at::Tensor keys_gradient = {}, values_gradient = {};
};

struct EchoLossSetup {
    const Transformer& model;
    policies::EchoLayout layout{};
    EchoLoss loss = EchoLoss::outputs;
    int64_t skipped = 0;  ///< first tokens of a sequence, which stay exact
};

/// The same to the last bit whatever the number of threads.
/// @param first what the first layer of its group has
/// @param keys_map, values_map (outputs, inputs) f32, contiguous
EchoLayerLoss loss_of_layer(const EchoLossSetup& setup, int layer, const EchoSequence& first, const EchoSequence& own,
                            const at::Tensor& keys_map, const at::Tensor& values_map, bool with_gradients);

}  // namespace kvscope::engine
