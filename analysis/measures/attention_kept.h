#pragma once

#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// Returns (L, H): the share of a query head's attention from the window that falls on kept entries. Query head h reads
/// row h / (H / R). A head without any attention gets NaN.
/// @param window_attention (L, H, N), mean over the window's queries
/// @throws std::invalid_argument if the sizes do not match or R does not divide H
std::vector<float> attention_kept(std::span<const float> window_attention, size_t n_heads, const KeptSets& kept);

}  // namespace kvscope::analysis
