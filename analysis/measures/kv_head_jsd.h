#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::analysis {

/// Returns (G, G): Jensen-Shannon divergences in nats between the KV heads of one layer, each head's
/// kv_head_attention() divided by its sum. A head without attention has NaN in its row and column.
/// @throws std::invalid_argument as kv_head_attention()
std::vector<float> kv_head_jsd(std::span<const float> window_attention, size_t n_heads, size_t n_kv_heads,
                               size_t window);

/// Returns (n): each head's mean divergence from the other heads. NaN values are not counted; a head without any other
/// values gets NaN.
/// @param divergence (n, n), symmetric
/// @throws std::invalid_argument if the matrix is not (n, n)
std::vector<double> mean_divergences(std::span<const float> divergence, size_t n);

}  // namespace kvscope::analysis
