#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"
#include "trace/reader.h"

namespace kvscope::analysis {

// A token counts as 1 if its row keeps it as an entry of its own, and as 1/n if it shares an entry with n - 1 others.
// Without merging, all counts are whole numbers.

/// Returns (L, N): the number of rows of a layer that keep each token, 0 ... R (K-VEC's Figure 4). A layer's numbers
/// sum to the number of entries in its cache.
std::vector<double> retention(const KeptSets& kept);

/// Returns (N): the number of layers that keep each token, 0 ... L (K-VEC's Figure 3). The row of a layer that holds
/// the most of the token counts.
std::vector<double> layers_keeping(const KeptSets& kept);

/// Returns (N): the number of rows of all layers that keep each token, 0 ... L R; the sum of retention() over the
/// layers.
std::vector<double> heads_keeping(const KeptSets& kept);

/// Returns (L, N): the number of rows of a layer that hold each token, alone or in a merged entry.
std::vector<uint16_t> holding_heads(const KeptSets& kept);

/// Returns (N): the share of the given layers' rows that keep each token, 0 ... 1.
/// @param layers at least one, each below L
std::vector<double> kept_shares(const KeptSets& kept, std::span<const int> layers);

/// Returns kept_shares() of a run in a trace.
std::vector<double> kept_shares(const trace::Reader& reader, int prompt, int run, std::span<const int> layers);

/// Returns the smallest count above 0, at most 1: the lower end of a color scale.
double least_kept(const std::vector<double>& counts);

}  // namespace kvscope::analysis
