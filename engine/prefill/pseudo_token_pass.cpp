#include "engine/prefill/pseudo_token_pass.h"

#include <algorithm>
#include <utility>

#include "engine/prefill/prefill_attention.h"

namespace kvscope::engine {

PseudoTokenPass::PseudoTokenPass(const Transformer& model, std::span<const Tail> tails) : model_(model) {
    for (const Tail& tail : tails) {
        capacity_ = std::max(capacity_, static_cast<int64_t>(tail.ids.size()));
        residuals_.push_back(model.embed(tail.ids));
        rotations_.push_back(model.rotation(tail.positions));
    }
}

PseudoTokenPass::Projections PseudoTokenPass::run_layer(int layer, size_t tail, DenseLayer& dense, int64_t n_tokens) {
    const auto shape = model_.shape();
    at::Tensor& residual = residuals_[tail];
    at::Tensor qkv = model_.project(layer, residual);
    at::Tensor plain = qkv.narrow(1, 0, int64_t{shape.n_heads} * shape.head_dim).clone();
    model_.rotate(qkv, rotations_[tail]);
    dense.write(shape, qkv, n_tokens);
    if (layer + 1 < shape.n_layers)
        model_.finish_layer(layer,
                            compute_causal_attention(model_, layer, qkv, dense, {.n = qkv.size(0), .first = n_tokens}),
                            residual);
    return {std::move(plain), std::move(qkv)};
}

}  // namespace kvscope::engine
