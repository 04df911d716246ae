#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Number of leading prompt tokens that are measured. A layer needs several arrays of 4 H n^2 bytes.
inline constexpr int64_t alignment_tokens = 2048;

/// Mean cosines of each query head's vectors with the gradient of the loss, (L, H) each, in [-1, 1].
struct GradientAlignment {
    std::vector<float> c11, c12, c22;
};

/// Returns the means of KVSlimmer's Figures 3 and 10 to 14: cos(E, c11), cos(E, c12) and cos(E, c22) over the queries
/// and over the neighbors m, m + 1 that a query sees. E is the gradient of the mean next-token loss with respect to the
/// head's output o. With attention weights alpha and values v (Eqs. 23 to 25):
///   c11 = alpha_m (1 - 2 alpha_m) (v_m - o), c22 the same for m + 1,
///   c12 = -alpha_m alpha_{m+1} (v_m + v_{m+1} - 2 o).
/// Pairs with a zero vector are skipped, and a head without pairs gets NaN. Computed in f32 on the processor, with the
/// same result for any number of threads.
/// @returns empty vectors for fewer than three ids
/// @throws UsageError for an id outside the vocabulary
GradientAlignment gradient_alignment(const Transformer& model, std::span<const int32_t> ids, Progress& progress);

}  // namespace kvscope::engine
