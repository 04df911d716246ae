#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::analysis {

/// (G, G) Jensen-Shannon divergences in nats between the KV heads of one layer: the mean of each group's H / G rows of
/// `window_attention` (H, N), over the prompt before the last `window` tokens, each divided by its sum.
/// A head without attention there gives NaN in its row and column.
/// @throws std::invalid_argument when sizes do not fit, G does not divide H, or the window leaves no prefix.
std::vector<float> kv_head_jsd(std::span<const float> window_attention, size_t n_heads, size_t n_kv_heads,
                               size_t window);

/// (n): of each head the mean of its divergences from the others, of a symmetric matrix (n, n); those that are NaN are
/// left out, and a head without any others gives NaN.
/// @throws std::invalid_argument when the matrix is not (n, n).
std::vector<double> mean_divergences(std::span<const float> divergence, size_t n);

}  // namespace kvscope::analysis
