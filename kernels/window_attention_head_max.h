#pragma once

#include "kernels/window_attention.h"

namespace kvscope::kernels {

/// Computes K-VEC's Eq. 13: each key's largest softmax weight in any KV head, averaged over window queries. A KV head's
/// weight is the mean of its query heads. Writes `mean` (N). Requires prefix_only = false and host memory.
/// Throws std::invalid_argument for null arrays, contradictory sizes, or keys that are neither f32 nor bf16.
void window_attention_head_max(const WindowAttention& problem);

}  // namespace kvscope::kernels
