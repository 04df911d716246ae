#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::analysis {

/// How focused a head's window attention is. K-VEC chooses heads by these numbers (Eq. 10, Table 10f).
struct HeadStatistics {
    double deviation = 0;  ///< standard deviation over the tokens
    double entropy = 0;    ///< entropy of the normalized attention in nats; at most ln n for n tokens
};

/// Returns the statistics of each KV head's kv_head_attention() in one layer.
[[nodiscard]] std::vector<HeadStatistics> head_statistics(std::span<const float> window_attention, size_t n_heads,
                                                          size_t n_kv_heads, size_t window);

}  // namespace kvscope::analysis
