#include "engine/prefill/projection_measures.h"

#include <algorithm>
#include <cmath>

#include "engine/prefill/projection_eigenvectors.h"
#include "kernels/adjacent_outer_products.h"
#include "kernels/bf16.h"
#include "kernels/cosine.h"
#include "kernels/threads/parallel_with_scratch.h"

namespace kvscope::engine {
namespace {

struct NoScratch {};

void copy_numbers(const at::Tensor& rows, int64_t first, int64_t d, float* to) {
    if (rows.scalar_type() == at::kBFloat16) {
        const auto* from = static_cast<const kernels::bf16*>(rows.const_data_ptr()) + first;
        std::transform(from, from + d, to, [](kernels::bf16 value) { return kernels::to_float(value); });
    } else {
        std::copy_n(rows.const_data_ptr<float>() + first, d, to);
    }
}

/// Rounding can move a mean outside [-1, 1].
float as_cosine(double mean) { return static_cast<float>(std::isnan(mean) ? mean : std::clamp(mean, -1.0, 1.0)); }

}  // namespace

std::vector<int64_t> evenly_spaced_tokens(int64_t n, int64_t most) {
    const int64_t m = std::min(n, most);
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < m; ++i) positions.push_back((2 * i + 1) * n / (2 * m));
    return positions;
}

ProjectionMeasures::ProjectionMeasures(const Transformer& model, int64_t n_tokens, std::span<const float> modes,
                                       trace::PromptRecord& record)
    : model_(model),
      n_tokens_(n_tokens),
      record_(record),
      all_modes_(modes),
      n_heads_(model.shape().n_heads + 2 * model.shape().n_kv_heads),
      sampled_(evenly_spaced_tokens(n_tokens, similarity_tokens)) {
    const auto layers = static_cast<size_t>(model.shape().n_layers);
    for (auto* similarities : {&record.layer_similarity_k, &record.layer_similarity_v})
        similarities->assign(layers * layers, 0.0f);
}

std::array<ProjectionMeasures::Projection, 3> ProjectionMeasures::projections() const {
    const int64_t h = model_.shape().n_heads, g = model_.shape().n_kv_heads;
    return {{{0, h, &record_.adjacent_similarity_q, &record_.mode_contribution_q},
             {h, g, &record_.adjacent_similarity_k, &record_.mode_contribution_k},
             {h + g, g, &record_.adjacent_similarity_v, &record_.mode_contribution_v}}};
}

void ProjectionMeasures::begin_layer(int layer) {
    const int64_t d = model_.shape().head_dim;
    layer_ = layer;
    n_seen_ = 0;
    previous_ = at::Tensor();
    neighbours_.assign(static_cast<size_t>(n_heads_ * d * d), 0.0);
    const auto size = static_cast<size_t>(model_.shape().n_kv_heads * d) * sampled_.size();
    for (auto& samples : samples_) samples.emplace_back(size);
}

void ProjectionMeasures::add(const at::Tensor& residual, const at::Tensor& qkv) {
    const at::Tensor rows = model_.is_projected_plainly(layer_) ? qkv : model_.project_plainly(layer_, residual);
    const int64_t d = model_.shape().head_dim, n = rows.size(0);
    kernels::add_adjacent_outer_products({.dtype = model_.dtype(),
                                          .n_heads = n_heads_,
                                          .n = n,
                                          .d = d,
                                          .head_stride = d,
                                          .row_stride = rows.size(1),
                                          .vectors = rows.const_data_ptr(),
                                          .before = previous_.defined() ? previous_.const_data_ptr() : nullptr,
                                          .sums = neighbours_.data()});
    previous_ = rows.select(0, n - 1).clone();
    keep_sample(qkv);
    n_seen_ += qkv.size(0);
}

void ProjectionMeasures::keep_sample(const at::Tensor& qkv) {
    const int64_t d = model_.shape().head_dim, g = model_.shape().n_kv_heads, h = model_.shape().n_heads;
    const auto m = static_cast<int64_t>(sampled_.size());
    const auto first = std::lower_bound(sampled_.begin(), sampled_.end(), n_seen_) - sampled_.begin();
    std::vector<float> numbers(static_cast<size_t>(d));
    for (int64_t i = first; i < m && sampled_[static_cast<size_t>(i)] < n_seen_ + qkv.size(0); ++i) {
        const int64_t row = sampled_[static_cast<size_t>(i)] - n_seen_;
        for (int64_t part = 0; part < 2; ++part) {
            for (int64_t head = 0; head < g; ++head) {
                copy_numbers(qkv, row * qkv.size(1) + (h + part * g + head) * d, d, numbers.data());
                const float* from = numbers.data();
                float* to = samples_[static_cast<size_t>(part)].back().data() + (head * m + i) * d;
                const double length = std::sqrt(kernels::dot(from, from, d));
                for (int64_t c = 0; c < d; ++c)
                    to[c] = length > 0 || std::isnan(length) ? static_cast<float>(double{from[c]} / length) : 0.0f;
            }
        }
    }
}

void ProjectionMeasures::finish_layer() {
    const int64_t d = model_.shape().head_dim;
    const auto pairs = static_cast<double>(std::max<int64_t>(n_tokens_ - 1, 1));
    const auto each = static_cast<size_t>(n_heads_ * d * d);
    const std::vector<float> solved =
        all_modes_.empty() ? layer_projection_eigenvectors(model_, layer_) : std::vector<float>();
    const auto modes =
        all_modes_.empty() ? std::span(solved) : all_modes_.subspan(static_cast<size_t>(layer_) * each, each);
    std::vector<double> contributions(static_cast<size_t>(n_heads_ * d));
    kernels::parallel_with_scratch<NoScratch>(n_heads_, [&](int64_t head, NoScratch&) {
        // A head's modes are an orthogonal basis, which preserves cosines.
        kernels::quadratic_forms(neighbours_.data() + head * d * d, modes.data() + head * d * d, d, d,
                                 contributions.data() + head * d);
    });
    for (const Projection& projection : projections()) {
        double cosines = 0;
        for (int64_t head = projection.first_head; head < projection.first_head + projection.n_heads; ++head) {
            for (int64_t i = 0; i < d; ++i) {
                cosines += neighbours_[static_cast<size_t>((head * d + i) * d + i)];
                projection.modes->push_back(
                    static_cast<float>(contributions[static_cast<size_t>(head * d + i)] / pairs));
            }
        }
        projection.adjacent->push_back(as_cosine(cosines / (pairs * static_cast<double>(projection.n_heads))));
    }
    compare_heads(samples_[0].back(), record_.head_similarity_k);
    compare_heads(samples_[1].back(), record_.head_similarity_v);
    compare_layers(samples_[0], record_.layer_similarity_k);
    compare_layers(samples_[1], record_.layer_similarity_v);
}

void ProjectionMeasures::compare_heads(const std::vector<float>& sample, std::vector<float>& similarities) const {
    const int64_t g = model_.shape().n_kv_heads, each = static_cast<int64_t>(sample.size()) / g;
    const size_t begin = similarities.size();
    similarities.resize(begin + static_cast<size_t>(g * g));
    for (int64_t a = 0; a < g; ++a)
        for (int64_t b = 0; b <= a; ++b) {
            const double sum = kernels::dot(sample.data() + a * each, sample.data() + b * each, each);
            const float mean = as_cosine(sum / static_cast<double>(sampled_.size()));
            similarities[begin + static_cast<size_t>(a * g + b)] = mean;
            similarities[begin + static_cast<size_t>(b * g + a)] = mean;
        }
}

void ProjectionMeasures::compare_layers(const std::vector<std::vector<float>>& samples,
                                        std::vector<float>& similarities) const {
    const int64_t n_layers = model_.shape().n_layers, newest = static_cast<int64_t>(samples.size()) - 1;
    const auto vectors = static_cast<double>(sampled_.size()) * model_.shape().n_kv_heads;
    kernels::parallel_with_scratch<NoScratch>(newest + 1, [&](int64_t other, NoScratch&) {
        const auto& a = samples[static_cast<size_t>(other)];
        const float mean =
            as_cosine(kernels::dot(a.data(), samples.back().data(), static_cast<int64_t>(a.size())) / vectors);
        similarities[static_cast<size_t>(newest * n_layers + other)] = mean;
        similarities[static_cast<size_t>(other * n_layers + newest)] = mean;
    });
}

}  // namespace kvscope::engine
