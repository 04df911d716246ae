#include "engine/prefill/key_gradients.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"

namespace kvscope::engine {
namespace {

constexpr int64_t logit_rows_at_once = 64;  // rows of logits in memory at one time

at::Tensor by_token(const at::Tensor& entries) {
    return entries.transpose(0, 1).reshape({entries.size(1), entries.size(0) * entries.size(2)});
}

at::Tensor by_head(const at::Tensor& rows, int64_t n_heads) {
    return rows.reshape({rows.size(0), n_heads, rows.size(1) / n_heads}).transpose(0, 1).contiguous();
}

std::vector<int64_t> consecutive(int64_t first, int64_t n) {
    std::vector<int64_t> positions(static_cast<size_t>(n));
    std::iota(positions.begin(), positions.end(), first);
    return positions;
}

}  // namespace

std::vector<int64_t> first_visible_entries(std::span<const int64_t> positions, int64_t n, int64_t window) {
    std::vector<int64_t> first;
    for (size_t i = positions.size() - static_cast<size_t>(n); window > 0 && i < positions.size(); ++i)
        first.push_back(std::upper_bound(positions.begin(), positions.end(), positions[i] - window) -
                        positions.begin());
    return first;
}

LayerRead compute_layer_for_chunk(const Transformer& model, int layer, const HeldEntries& held, int64_t first,
                                  at::Tensor& residual) {
    const auto shape = model.shape();
    const int64_t m = residual.size(0), d = shape.head_dim, g = shape.n_kv_heads, h = shape.n_heads;
    const at::Tensor qkv = model.project(layer, residual);
    const at::Tensor own_keys = qkv.narrow(1, h * d, g * d), own_values = qkv.narrow(1, (h + g) * d, g * d);
    const auto own_positions = consecutive(first, m);
    std::vector<int64_t> positions = held.positions;
    std::vector<int64_t> places = held.places.empty() ? held.positions : held.places;
    for (auto* all : {&positions, &places}) all->insert(all->end(), own_positions.begin(), own_positions.end());
    std::vector<float> masses = held.masses;
    masses.resize(positions.size(), 1.0f);
    at::Tensor keys = at::cat({by_token(held.keys), own_keys});
    at::Tensor queries = qkv.narrow(1, 0, h * d).contiguous();
    model.operations().rotate(keys, g, model.rotation(places));
    model.operations().rotate(queries, h, model.rotation(own_positions));
    auto first_keys = first_visible_entries(positions, m, model.config().sliding_window[static_cast<size_t>(layer)]);
    AttentionRead read{.shape = shape,
                       .scale = model.attention_scale(),
                       .queries = queries,
                       .keys = by_head(keys, g),
                       .values = at::cat({held.values, by_head(own_values, g)}, 1),
                       .masses = masses,
                       .first_keys = first_keys,
                       .out = at::empty_like(queries)};
    model.operations().attend({&read, 1});
    model.finish_layer(layer, read.out, residual);
    return {own_keys, queries, read.keys, read.values, std::move(first_keys), read.out};
}

at::Tensor gradient_of_loss(const Transformer& model, std::span<const int32_t> ids, const at::Tensor& residual,
                            const Progress& progress) {
    const int64_t n = residual.size(0) - 1;
    at::Tensor gradient = at::zeros_like(residual);
    for (int64_t begin = 0; begin < n; begin += logit_rows_at_once) {
        progress.throw_if_stopped();
        const int64_t rows = std::min(logit_rows_at_once, n - begin);
        at::Tensor x = residual.narrow(0, begin, rows).detach();
        x.set_requires_grad(true);
        const at::Tensor logits = model.logits(x);
        // In f32, the derivative p - 1 would lose all digits if the probability p is close to 1.
        at::Tensor slopes = at::softmax(logits.detach(), -1, at::kDouble);
        for (int64_t i = 0; i < rows; ++i)
            slopes.data_ptr<double>()[i * slopes.size(1) + ids[static_cast<size_t>(begin + i + 1)]] -= 1.0;
        const at::Tensor of_logits = slopes.div_(static_cast<double>(n)).to(at::kFloat);
        const auto found = torch::autograd::grad({logits}, {x}, {of_logits});
        gradient.narrow(0, begin, rows).copy_(found[0]);
    }
    return gradient;
}

std::vector<at::Tensor> key_gradients(const Transformer& given, const ChunkRead& chunk, const Progress& progress) {
    const Transformer& model = given.on_processor();
    if (chunk.ids.size() < 2) return {};
    const Transformer differentiable = model.computed_with(differentiable_operations());
    at::Tensor gradient = gradient_of_loss(differentiable, chunk.ids, chunk.residuals.back(), progress);
    std::vector<at::Tensor> gradients(chunk.held.size());
    for (size_t layer = chunk.held.size(); layer-- > 0;) {
        progress.throw_if_stopped();
        const HeldEntries& stored = chunk.held[layer];
        HeldEntries held{stored.keys.to(at::kFloat, false, true), stored.values.to(at::kFloat), stored.masses,
                         stored.positions, stored.places};
        held.keys.set_requires_grad(true);
        at::Tensor x = chunk.residuals[layer].detach();
        x.set_requires_grad(true);
        at::Tensor residual = x;
        const at::Tensor own =
            compute_layer_for_chunk(differentiable, static_cast<int>(layer), held, chunk.first, residual).own_keys;
        const auto found = torch::autograd::grad({residual}, {x, held.keys, own}, {gradient});
        gradient = found[0];
        gradients[layer] = chunk.by_own_keys
                               ? at::cat({found[1], by_head(found[2], model.shape().n_kv_heads)}, 1).contiguous()
                               : found[1].contiguous();
    }
    return gradients;
}

}  // namespace kvscope::engine
