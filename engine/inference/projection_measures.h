#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/transformer.h"
#include "trace/records.h"

namespace kvscope::engine {

/// Tokens at which the keys and values of layers and heads are compared, at most.
inline constexpr int64_t similarity_tokens = 256;

/// (min(n, most)) positions in [0, n), evenly spaced: the middles of as many equal parts.
std::vector<int64_t> evenly_spaced_tokens(int64_t n, int64_t most);

/// What a prompt's record holds of its queries, keys and values before RoPE, added up while the prompt is read, layer
/// by layer and within a layer chunk by chunk:
/// - `adjacent_similarity`, cos(y_t, y_{t+1}), and `mode_contribution`, c_i of KVSlimmer's Eq. 8, both of y = x W
/// alone,
///   without biases and norms of queries and keys, averaged over neighbouring tokens, the cosines also over heads. With
///   W = U S V^T of one head, c_i = (y_t . v_i)(y_{t+1} . v_i) / (|y_t| |y_{t+1}|), so that the contributions of a
///   head's modes add up to its cosine;
/// - `layer_similarity` and `head_similarity`, cosines of a token's keys (values) as the cache has them but for RoPE,
/// in
///   the same head of two layers, or in two heads of a layer, averaged over `similarity_tokens` of the tokens, those of
///   layers also over heads. The unit vectors of all layers are held: 8 L G d bytes for each of these tokens.
/// A cosine with a vector of zeros is 0, and so is the mean over the neighbours of a single token. The same with any
/// number of threads.
class ProjectionMeasures {
 public:
    /// @param n_tokens N, of the prompt that is read
    /// @param modes    of all layers, (L, H + 2G, d, d) as `projection_modes` has them, which live as long as this;
    /// empty:
    ///                 each layer's are worked out
    /// @param record   receives the measures; lives as long as this
    ProjectionMeasures(const Transformer& model, int64_t n_tokens, std::span<const float> modes,
                       trace::PromptRecord& record);

    void begin_layer(int layer);
    /// The next tokens: their residual stream before the layer, (n, hidden) f32, and what `Transformer::project` made
    /// of it, (n, (H + 2G) d).
    void add(const at::Tensor& residual, const at::Tensor& qkv);
    void finish_layer();

 private:
    struct Projection {
        int64_t first_head, n_heads;  ///< among the H + 2G
        std::vector<float>*adjacent, *modes;
    };

    std::array<Projection, 3> projections() const;
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
    at::Tensor previous_;             ///< ((H + 2G) d) of the last token that was seen
    std::vector<double> neighbours_;  ///< (H + 2G, d, d): `kernels::neighbour_products` of the layer's tokens
    std::array<std::vector<std::vector<float>>, 2> samples_;  ///< keys, values: (layers so far) of (G, tokens, d)
};

}  // namespace kvscope::engine
