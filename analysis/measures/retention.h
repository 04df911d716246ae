#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"
#include "trace/reader.h"

namespace kvscope::analysis {

// A token counts as the part of an entry that it has: as 1 where its row keeps it as an entry of its own, as 1/n where
// it went into an entry with n - 1 others. Of a run that merges nothing all of these are whole numbers.

/// (L, N): how many rows (heads) of a layer keep each token, 0 ... R (K-VEC's Figure 4). A layer's numbers add up to
/// the entries that its cache holds.
std::vector<double> retention(const KeptSets& kept);

/// (N): how many layers keep each token, 0 ... L (K-VEC's Figure 3). A layer counts as the row that has the most of it.
std::vector<double> layers_keeping(const KeptSets& kept);

/// (N): how many rows of all layers keep each token, 0 ... L R: the sum of `retention` over the layers.
std::vector<double> heads_keeping(const KeptSets& kept);

/// (L, N): in how many rows of a layer each token is held at all, be it in an entry with others.
std::vector<uint16_t> holding_heads(const KeptSets& kept);

/// (N): the share of the rows of these layers that keep each token, 0 ... 1.
/// @param layers below L, at least one
std::vector<double> kept_shares(const KeptSets& kept, std::span<const int> layers);

/// The same of a run in a trace.
std::vector<double> kept_shares(const trace::Reader& reader, int prompt, int run, std::span<const int> layers);

/// The smallest of such numbers that is not 0, at most 1: where colours of them begin.
double least_kept(const std::vector<double>& counts);

}  // namespace kvscope::analysis
