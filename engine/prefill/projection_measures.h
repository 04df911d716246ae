#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/transformer.h"
#include "trace/records/records.h"

namespace kvscope::engine {

/// Largest number of tokens whose keys and values are compared between layers and heads.
inline constexpr int64_t similarity_tokens = 256;

/// Returns min(n, most) positions in [0, n), at the centers of equal intervals.
[[nodiscard]] std::vector<int64_t> evenly_spaced_tokens(int64_t n, int64_t most);

/// Measures a prompt's queries, keys and values before RoPE, layer by layer and chunk by chunk. Cosines with a zero
/// vector are 0. Results do not depend on the number of threads.
/// - `adjacent_similarity`: cos(y_t, y_{t+1}) for y = x W without biases and without query and key
///   norms, averaged over neighboring tokens and heads.
/// - `mode_contribution`: c_i of KVSlimmer's Eq. 8, averaged over neighboring tokens. With W = U S V^T of one head,
/// c_i = (y_t . v_i)(y_{t+1} . v_i) / (|y_t| |y_{t+1}|).
/// - `layer_similarity`, `head_similarity`: mean cosine of a token's keys (or values) in two layers or heads, over
///   at most similarity_tokens tokens and, for layers, over heads.
class ProjectionMeasures {
 public:
    /// @param modes (L, H + 2G, d, d) from projection_eigenvectors(); if empty, each layer's modes are computed
    /// @param record receives the measures; must outlive this object, like `modes`
    ProjectionMeasures(const Transformer& model, int64_t n_tokens, std::span<const float> modes,
                       trace::PromptRecord& record);

    void begin_layer(int layer);
    void add(const at::Tensor& residual, const at::Tensor& qkv);
    void finish_layer();

 private:
    struct Projection {
        int64_t first_head, n_heads;  ///< range among the H + 2G heads
        std::vector<float>*adjacent, *modes;
    };

    [[nodiscard]] std::array<Projection, 3> projections() const;
    void keep_sample(const at::Tensor& qkv);
    void compare_heads(const std::vector<float>& sample, std::vector<float>& similarities) const;
    void compare_layers(const std::vector<std::vector<float>>& samples, std::vector<float>& similarities) const;

    const Transformer& model_;
    int64_t n_tokens_;
    trace::PromptRecord& record_;
    std::span<const float> all_modes_;
    int64_t n_heads_;  ///< H + 2G
    std::vector<int64_t> sampled_;
    int layer_ = 0;
    int64_t n_seen_ = 0;
    at::Tensor previous_;             ///< ((H + 2G) d) of the last added token
    std::vector<double> neighbours_;  ///< kernels::add_adjacent_outer_products of the layer's tokens, (H + 2G, d, d)
    std::array<std::vector<std::vector<float>>, 2>
        samples_;  ///< keys and values of sampled tokens in each layer, (G, tokens, d)
};

}  // namespace kvscope::engine
