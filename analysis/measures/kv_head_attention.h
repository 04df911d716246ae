#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::analysis {

/// Returns (G, N - window): one layer's `window_attention` (H, N) for the prompt without its last `window` tokens,
/// averaged over the H / G query heads of each KV head.
/// @throws std::invalid_argument if the sizes do not match, G does not divide H, or `window` >= N
std::vector<float> kv_head_attention(std::span<const float> window_attention, size_t n_heads, size_t n_kv_heads,
                                     size_t window);

}  // namespace kvscope::analysis
