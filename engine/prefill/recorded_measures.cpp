#include "engine/prefill/recorded_measures.h"

#include <algorithm>
#include <cmath>

#include "kernels/cosine.h"
#include "kernels/divergence.h"

namespace kvscope::engine {

void record_layer_measures(policies::LayerObservations& observations, int window, trace::PromptRecord& record) {
    const auto& shape = observations.shape;
    const int64_t heads = shape.n_heads;
    const int64_t n = observations.n_tokens;
    const int64_t w = std::min<int64_t>(window, n);
    const auto& attention = observations.window_attention(window, 0.0f, policies::SoftmaxRange::visible);
    record.window_attention.insert(record.window_attention.end(), attention.begin(), attention.end());

    const size_t similarity_first = record.query_similarity.size();
    record.query_similarity.resize(similarity_first + static_cast<size_t>(heads * w * w));
    const int64_t d = shape.head_dim;
    for (int64_t h = 0; h < heads; ++h) {
        const float* queries =
            observations.window_queries.data() + (h * observations.n_window + observations.n_window - w) * d;
        kernels::cosine_matrix(queries, w, d, d, record.query_similarity.data() + similarity_first + h * w * w);
    }

    const size_t jsd_first = record.head_jsd.size();
    record.head_jsd.resize(jsd_first + static_cast<size_t>(heads * heads));
    kernels::jsd_matrix_of_weights(attention.data(), heads, n > w ? n - w : n, n, record.head_jsd.data() + jsd_first);
}

std::span<const float> slice_layer_attention(std::span<const float> attention, size_t layer, int64_t n_tokens,
                                             const policies::ModelShape& shape) {
    if (attention.empty()) return attention;
    const auto size = static_cast<size_t>(shape.n_heads * n_tokens);
    return attention.subspan(layer * size, size);
}

std::vector<float> attention_kept(std::span<const float> window_attention, const policies::ModelShape& shape,
                                  int64_t n_tokens, const policies::Selection& selection) {
    const int64_t per_row = shape.n_heads / static_cast<int64_t>(selection.rows.size());
    std::vector<float> shares;
    // One loop sums all heads of a row, because independent sums are faster than one sum after another.
    std::vector<double> kept(static_cast<size_t>(per_row));
    const float* weights = window_attention.data();
    for (const auto& row : selection.rows) {
        std::fill(kept.begin(), kept.end(), 0.0);
        for (const uint32_t j : row) {
            for (int64_t h = 0; h < per_row; ++h) kept[static_cast<size_t>(h)] += weights[h * n_tokens + j];
        }
        for (const double share : kept) shares.push_back(static_cast<float>(std::min(share, 1.0)));
        weights += per_row * n_tokens;
    }
    return shares;
}

std::vector<float> recordable_logits(const std::vector<float>& logits) {
    const auto is_generic = [](float logit) { return std::isnan(logit) || (std::isinf(logit) && logit > 0); };
    return std::any_of(logits.begin(), logits.end(), is_generic) ? std::vector<float>{} : logits;
}

}  // namespace kvscope::engine
