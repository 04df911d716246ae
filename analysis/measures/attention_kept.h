#pragma once

#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// Returns the share of each query head's window attention on kept entries (L, H); NaN for a head without attention.
/// @param window_attention (L, H, N), mean over the window's queries
/// @throws std::invalid_argument if the sizes do not match
[[nodiscard]] std::vector<float> attention_kept(std::span<const float> window_attention, size_t n_heads,
                                                const KeptSets& kept);

}  // namespace kvscope::analysis
