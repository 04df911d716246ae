#pragma once

#include "kernels/window_attention.h"

namespace kvscope::kernels {

/// Mean over the window's queries of the largest softmax weight that any KV head gives a key, a KV head's weight being
/// the mean over its query heads (K-VEC's Eq. 13). `mean` is (N), 0 where no query sees a key; `prefix_only` has to be
/// off, and all arrays lie in the processor's memory. The result does not depend on the number of threads.
/// @throws std::invalid_argument for null arrays, sizes that do not fit, or keys that are neither f32 nor bf16.
void window_peak(const WindowAttention& problem);

}  // namespace kvscope::kernels
