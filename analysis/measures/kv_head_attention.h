#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::analysis {

/// Returns each KV head's mean attention to the prompt before the window (G, N - window).
/// @param window_attention (H, N) of one layer
/// @throws std::invalid_argument if the sizes do not match or the prompt is not longer than the window
[[nodiscard]] std::vector<float> kv_head_attention(std::span<const float> window_attention, size_t n_heads,
                                                   size_t n_kv_heads, size_t window);

}  // namespace kvscope::analysis
