#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::analysis {

/// Returns the Jensen-Shannon divergences between the KV heads of one layer (G, G) in nats; NaN for heads without
/// attention. @throws std::invalid_argument as kv_head_attention()
[[nodiscard]] std::vector<float> kv_head_jsd(std::span<const float> window_attention, size_t n_heads, size_t n_kv_heads,
                                             size_t window);

/// Returns each head's mean divergence from the other heads (n). NaN values are ignored; NaN if no value remains.
/// @param divergence (n, n), symmetric
[[nodiscard]] std::vector<double> mean_divergences_from_other_heads(std::span<const float> divergence, size_t n);

}  // namespace kvscope::analysis
