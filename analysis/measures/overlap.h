#pragma once

#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// Jaccard index |A and B| / |A or B| of two ascending lists; 1 where both are empty.
double jaccard(std::span<const uint32_t> a, std::span<const uint32_t> b);

/// (L, R, R): Jaccard index of the kept sets of each pair of rows of a layer.
std::vector<double> head_overlap(const KeptSets& kept);

/// (L): of two runs on the same prompt, the entries (row, token) of a layer that both keep over those that either
/// keeps. A token that went into an entry of n counts as one n-th of it: of what both hold the smaller part counts, of
/// what either holds the larger. Where one has more rows than the other (query heads beside KV heads), a row of the
/// smaller stands for its whole group.
/// @throws std::invalid_argument when the two differ in layers or tokens, or one's rows are no multiple of the other's.
std::vector<double> run_overlap(const KeptSets& a, const KeptSets& b);

/// The same over all layers together.
double run_overlap_total(const KeptSets& a, const KeptSets& b);

/// (L): the unique tokens of a layer that both keep over those that either keeps, whatever the heads.
std::vector<double> run_token_overlap(const KeptSets& a, const KeptSets& b);

}  // namespace kvscope::analysis
