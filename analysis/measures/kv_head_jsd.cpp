#include "analysis/measures/kv_head_jsd.h"

#include "analysis/measures/kv_head_attention.h"
#include "kernels/divergence.h"

namespace kvscope::analysis {

std::vector<float> kv_head_jsd(std::span<const float> window_attention, size_t n_heads, size_t n_kv_heads,
                               size_t window) {
    const std::vector<float> means = kv_head_attention(window_attention, n_heads, n_kv_heads, window);
    const size_t n_prefix = means.size() / n_kv_heads;
    std::vector<float> jsd(n_kv_heads * n_kv_heads);
    kernels::jsd_matrix_of_weights(means.data(), static_cast<int64_t>(n_kv_heads), static_cast<int64_t>(n_prefix),
                                   static_cast<int64_t>(n_prefix), jsd.data());
    return jsd;
}

}  // namespace kvscope::analysis
