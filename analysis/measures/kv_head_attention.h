#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::analysis {

/// (G, N - window): the mean of each KV head's H / G rows of one layer's `window_attention` (H, N), over the prompt
/// before the last `window` tokens.
/// @throws std::invalid_argument when sizes do not fit, G does not divide H, or the window leaves no prefix.
std::vector<float> kv_head_attention(std::span<const float> window_attention, size_t n_heads, size_t n_kv_heads,
                                     size_t window);

}  // namespace kvscope::analysis
