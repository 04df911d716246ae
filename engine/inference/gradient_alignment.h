#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Tokens of a prompt that the alignment is measured on, at most: its first ones. A layer's attention weights are held
/// while it is differentiated, 4 H n^2 bytes and a few times more.
inline constexpr int64_t alignment_tokens = 2048;

/// How each query head's vectors lie to the gradient of the loss: (L, H) each, in [-1, 1].
struct GradientAlignment {
    std::vector<float> c11, c12, c22;
};

/// KVSlimmer's Figures 3 and 10 to 14: means of cos(E, c11), cos(E, c12), cos(E, c22) over queries and over the pairs
/// m, m + 1 of neighbours that a query sees, where E is the gradient of the mean next-token loss of the first
/// `alignment_tokens` ids by the head's output o, before the output projection, and (Eqs. 23 to 25) with the attention
/// weights alpha and the values v
///   c11 = alpha_m (1 - 2 alpha_m) (v_m - o), c22 the same of m + 1,
///   c12 = -alpha_m alpha_{m+1} (v_m + v_{m+1} - 2 o).
/// Pairs are left out where one of the two vectors is zero, as E is of the last query, which predicts nothing; NaN
/// where that leaves none. The model reads the ids once more; then each layer is computed again from the last to the
/// first, in f32, as for `key_gradients`. The same with any number of threads.
/// @returns nothing of less than three ids, of which no query has two neighbours and a gradient
/// @throws UsageError for an id outside the vocabulary; Cancelled, between layers
/// On the processor wherever the model is.
GradientAlignment gradient_alignment(const Transformer& model, std::span<const int32_t> ids, Progress& progress);

}  // namespace kvscope::engine
