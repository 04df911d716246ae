#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// (N) of one layer: the share of the window's full attention that falls on each token in the heads that hold nothing
/// of it, the mean over the query heads. `window_attention` is (H, N) of that layer; query head h reads row h / (H /
/// R). A head without any attention is left out of the mean; where no head has any, all are NaN. The numbers add up to
/// 1 less the mean of attention_kept() over the layer's heads.
/// @throws std::invalid_argument when the sizes do not fit or H is no multiple of R.
std::vector<double> attention_lost(std::span<const float> window_attention, size_t n_heads, const KeptSets& kept,
                                   size_t layer);

}  // namespace kvscope::analysis
