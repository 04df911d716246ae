#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Largest number of a prompt's tokens that are measured. A layer needs several arrays of 4 H n^2 bytes.
inline constexpr int64_t alignment_tokens = 2048;

/// Mean cosines with the loss's gradient, (L, H) each, in [-1, 1].
struct GradientAlignment {
    std::vector<float> c11, c12, c22;
};

/// Returns the mean cosines between E and the vectors c11, c12 and c22 for each query head (KVSlimmer, Figures 3 and 10
/// to 14). E is the gradient of the mean next-token loss with respect to the head's output o. The mean covers all
/// queries and all visible pairs of entries (m, m + 1). With attention weights alpha and values v (Eqs. 23 to 25):
///   c11 = alpha_m (1 - 2 alpha_m) (v_m - o), c22 the same for m + 1,
///   c12 = -alpha_m alpha_{m+1} (v_m + v_{m+1} - 2 o).
/// Skips pairs with a zero vector; heads without pairs get NaN. The result does not depend on the number of threads.
/// @returns empty vectors for fewer than three ids @throws UsageError for an id outside the vocabulary
[[nodiscard]] GradientAlignment gradient_alignment(const Transformer& model, std::span<const int32_t> ids,
                                                   Progress& progress);

}  // namespace kvscope::engine
