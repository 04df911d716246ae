#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "engine/model/transformer.h"
#include "policies/interface/echo_maps.h"

namespace kvscope::engine {

/// Losses for gradient descent on EchoKV's maps. Each rebuilt layer is compared with the uncompressed model, which
/// provides its inputs. Losses are averaged over tokens and numbers, or over tokens and heads.
enum class EchoLoss {
    keys_values,  ///< first stage: squared error of rebuilt keys (before RoPE) and values
    outputs,      ///< second stage: squared difference of attention outputs with true and with rebuilt keys and values
    qk_kl         ///< KL(A || A~) of attention with true keys A and with rebuilt keys A~; independent of values
};

/// Returns "keys-values", "outputs" or "qk-kl".
std::string_view name_of(EchoLoss loss);

/// Keys, values and queries of a layer for a sequence of n tokens, f32.
struct EchoSequence {
    at::Tensor keys = {};     ///< (n, D) before RoPE
    at::Tensor values = {};   ///< (n, D)
    at::Tensor queries = {};  ///< (n, H d) after RoPE; not needed for keys_values
};

/// Loss of a layer with its gradients with respect to both maps, (outputs, inputs) each. A gradient is undefined if it
/// was not requested or the loss does not depend on the map.
struct EchoLayerLoss {
    double loss = 0;
    double scale = 0;  ///< mean square of the reference values; 1 for qk_kl
    at::Tensor keys_gradient = {}, values_gradient = {};
};

/// Model, layout and kind of loss for `loss_of_layer`.
struct EchoLossSetup {
    const Transformer& model;
    policies::EchoLayout layout{};
    EchoLoss loss = EchoLoss::outputs;
    int64_t skipped = 0;  ///< number of first tokens of a sequence that stay exact
};

/// Computes a layer's loss over one sequence. Results are bit-identical for any number of threads.
/// @param first numbers of the first layer of the group
/// @param keys_map, values_map (outputs, inputs) f32, contiguous
EchoLayerLoss loss_of_layer(const EchoLossSetup& setup, int layer, const EchoSequence& first, const EchoSequence& own,
                            const at::Tensor& keys_map, const at::Tensor& values_map, bool with_gradients);

}  // namespace kvscope::engine
