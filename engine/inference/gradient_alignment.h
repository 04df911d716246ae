#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Greatest number of leading prompt tokens for which the alignment is measured. Differentiating a layer holds its
/// attention weights, 4 H n^2 bytes, and several arrays of that size.
inline constexpr int64_t alignment_tokens = 2048;

/// Mean cosines of each query head's vectors with the gradient of the loss, (L, H) each, in [-1, 1].
struct GradientAlignment {
    std::vector<float> c11, c12, c22;
};

/// Computes the cosines of KVSlimmer's Figures 3 and 10 to 14: cos(E, c11), cos(E, c12) and cos(E, c22), averaged over
/// the queries and over the neighbors m, m + 1 that a query sees. E is the gradient of the mean next-token loss of the
/// first `alignment_tokens` ids with respect to the head's output o before the output projection. With attention
/// weights alpha and values v (Eqs. 23 to 25):
///   c11 = alpha_m (1 - 2 alpha_m) (v_m - o), c22 the same for m + 1,
///   c12 = -alpha_m alpha_{m+1} (v_m + v_{m+1} - 2 o).
/// Pairs with a zero vector are skipped, for example all pairs of the last query, which predicts no token. A head
/// without pairs gets NaN. The model reads the ids once; then each layer, from the last to the first, is computed again
/// in f32 on the processor. The result does not depend on the number of threads.
/// @returns empty vectors for fewer than three ids
/// @throws UsageError for an id outside the vocabulary; Cancelled, checked between layers
GradientAlignment gradient_alignment(const Transformer& model, std::span<const int32_t> ids, Progress& progress);

}  // namespace kvscope::engine
