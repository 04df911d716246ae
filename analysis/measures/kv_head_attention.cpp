#include "analysis/measures/kv_head_attention.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kvscope::analysis {

std::vector<float> kv_head_attention(std::span<const float> window_attention, size_t n_heads, size_t n_kv_heads,
                                     size_t window) {
    if (n_kv_heads == 0 || n_heads == 0 || n_heads % n_kv_heads != 0 || window_attention.size() % n_heads != 0) {
        throw std::invalid_argument(
            fmt::format("attention of KV heads: {} values do not match {} heads and {} KV heads",
                        window_attention.size(), n_heads, n_kv_heads));
    }
    const size_t n_tokens = window_attention.size() / n_heads;
    if (n_tokens <= window) {
        throw std::invalid_argument(fmt::format(
            "attention of KV heads: a prompt of {} tokens is not longer than its window of {}", n_tokens, window));
    }
    const size_t n_prefix = n_tokens - window;
    const size_t group = n_heads / n_kv_heads;
    std::vector<float> means(n_kv_heads * n_prefix, 0.0F);
    for (size_t head = 0; head < n_heads; ++head) {
        const float* from = window_attention.data() + head * n_tokens;
        float* to = means.data() + head / group * n_prefix;
        for (size_t token = 0; token < n_prefix; ++token) to[token] += from[token] / static_cast<float>(group);
    }
    return means;
}

}  // namespace kvscope::analysis
