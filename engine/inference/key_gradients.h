#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// The first of the entries at ascending positions that each of the last n sees through a window (0: none) of that many
/// positions, its own included; empty where each sees all.
std::vector<int64_t> first_seen(std::span<const int64_t> positions, int64_t n, int64_t window);

/// What a layer's cache holds when a chunk reads it.
struct HeldEntries {
    at::Tensor keys, values;         ///< (G, n, d), keys before RoPE
    std::vector<float> masses;       ///< (n) tokens of each entry, as attention counts them
    std::vector<int64_t> positions;  ///< (n) of each one's last token, which a sliding window goes by
    std::vector<int64_t> places{};   ///< (n) where each stands; empty: there
};

/// What the attention of a layer got and gave as a chunk of m tokens was read behind n entries.
struct LayerRead {
    at::Tensor own_keys = {};              ///< (m, G d) the chunk's, before RoPE
    at::Tensor queries = {};               ///< (m, H d) rotated
    at::Tensor keys = {}, values = {};     ///< (G, n + m, d) keys rotated
    std::vector<int64_t> first_keys = {};  ///< (m) the first entry that each query sees; empty: entry 0
    at::Tensor outputs = {};               ///< (m, H d)
};

/// One layer of a chunk of m tokens at positions first, first + 1, …, which read what is held and themselves.
/// @param residual (m, hidden) f32, becomes the next layer's
LayerRead read_layer(const Transformer& model, int layer, const HeldEntries& held, int64_t first, at::Tensor& residual);

/// A chunk that was read, and what its loss is to be differentiated by.
struct ChunkRead {
    std::span<const int32_t> ids;         ///< (m)
    int64_t first = 0;                    ///< position of its first token
    std::vector<at::Tensor> residuals{};  ///< (L + 1) of (m, hidden) f32: before each layer and behind the last
    std::vector<HeldEntries> held{};      ///< (L) what it read, without itself
    bool by_own_keys = false;             ///< also by the keys of its own tokens
};

/// Gradient of the mean loss -ln p of a chunk's tokens but the first, each predicted from those before it, by the
/// residual stream behind the last layer: (m, hidden) f32, zero for the last token, which predicts none.
/// @param model computed with the differentiable operations
/// @throws Cancelled
at::Tensor gradient_of_loss(const Transformer& model, std::span<const int32_t> ids, const at::Tensor& residual,
                            const Progress& progress);

/// Gradient, by each key before RoPE, of the mean loss -ln p of the chunk's tokens but the first, each predicted from
/// those before it: what a labelled chunk costs where nothing behind it is known. Each layer is computed once more,
/// from the residual stream that the run had there, in f32, and differentiated on its own: one layer's intermediate
/// arrays are held at a time. The same with any number of threads. On the processor wherever the model is.
/// @returns (L) of (G, n [+ m], d) f32, contiguous; none for a chunk of one token, which predicts nothing
/// @throws Cancelled, between layers
std::vector<at::Tensor> key_gradients(const Transformer& model, const ChunkRead& chunk, const Progress& progress);

}  // namespace kvscope::engine
