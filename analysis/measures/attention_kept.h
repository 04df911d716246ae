#pragma once

#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// (L, H): the share of the window's full attention that falls on kept entries. `window_attention` is (L, H, N), the
/// mean over the window's queries; query head h reads row h / (H / R). Sums in double; a head without any attention
/// gives NaN.
/// @throws std::invalid_argument when the sizes do not fit or H is no multiple of R.
std::vector<float> attention_kept(std::span<const float> window_attention, size_t n_heads, const KeptSets& kept);

}  // namespace kvscope::analysis
