#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Returns, for each of the last n entries, the first entry in its sliding window. The window ends with the entry
/// itself and has `window` positions. The result is empty if every entry sees all entries.
[[nodiscard]] std::vector<int64_t> first_visible_entries(std::span<const int64_t> positions, int64_t n, int64_t window);

struct HeldEntries {
    at::Tensor keys, values;         ///< (G, n, d), keys before RoPE
    std::vector<float> masses;       ///< (n) number of tokens in each entry, as attention counts them
    std::vector<int64_t> positions;  ///< (n) position of each entry's last token, used by sliding windows
    std::vector<int64_t> places{};   ///< (n) positions for RoPE; empty if equal to `positions`
};

struct LayerRead {
    at::Tensor own_keys = {};              ///< (m, G d) keys of the chunk, before RoPE
    at::Tensor queries = {};               ///< (m, H d) after RoPE
    at::Tensor keys = {}, values = {};     ///< (G, n + m, d) keys after RoPE
    std::vector<int64_t> first_keys = {};  ///< (m) first entry that each query sees; empty if all see entry 0
    at::Tensor outputs = {};               ///< (m, H d)
};

/// Computes a layer for a chunk of m tokens that attends to the held entries and itself.
/// @param residual (m, hidden) f32, replaced by the residual stream after the layer
LayerRead compute_layer_for_chunk(const Transformer& model, int layer, const HeldEntries& held, int64_t first,
                                  at::Tensor& residual);

struct ChunkRead {
    std::span<const int32_t> ids;         ///< (m)
    int64_t first = 0;                    ///< position of the chunk's first token
    std::vector<at::Tensor> residuals{};  ///< (L + 1) tensors (m, hidden) f32: before each layer and after all layers
    std::vector<HeldEntries> held{};      ///< (L) entries before the chunk
    bool by_own_keys = false;             ///< whether to compute gradients for the chunk's own keys, too
};

/// Returns the gradient of the mean loss -ln p over all tokens but the first, with respect to the last layer's output,
/// (m, hidden) f32. @param model must use differentiable_operations()
[[nodiscard]] at::Tensor gradient_of_loss(const Transformer& model, std::span<const int32_t> ids,
                                          const at::Tensor& residual, const Progress& progress);

/// Returns the gradient of the chunk's loss with respect to the keys before RoPE, as a tensor (G, n or n + m, d) f32
/// for each layer; empty for a chunk of one token. Differentiates one layer at a time, to save memory.
[[nodiscard]] std::vector<at::Tensor> key_gradients(const Transformer& model, const ChunkRead& chunk,
                                                    const Progress& progress);

}  // namespace kvscope::engine
