#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::analysis {

/// How focused a head's windowed scores are: what K-VEC chooses heads by (its Eq. 10 and Table 10f).
struct HeadStatistics {
    double deviation = 0;  ///< standard deviation over the tokens
    double entropy = 0;    ///< of the scores divided by their sum, nats; ln n where all n tokens are alike
};

/// Of each KV head of one layer: the mean of its H / G rows of `window_attention` (H, N) over the prompt before the
/// last `window` tokens, not pooled.
/// @throws std::invalid_argument as kv_head_attention.
std::vector<HeadStatistics> head_statistics(std::span<const float> window_attention, size_t n_heads, size_t n_kv_heads,
                                            size_t window);

}  // namespace kvscope::analysis
