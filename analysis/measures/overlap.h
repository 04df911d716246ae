#pragma once

#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// Returns the Jaccard index |A ∩ B| / |A ∪ B| of two ascending lists; 1 if both are empty.
double jaccard(std::span<const uint32_t> a, std::span<const uint32_t> b);

/// Returns (L, R, R): the Jaccard index of the kept sets for each pair of rows of a layer.
std::vector<double> head_overlap(const KeptSets& kept);

/// Returns (L): the Jaccard index of the entries (row, token) of two runs on the same prompt. A token that shares an
/// entry with n - 1 others counts as 1/n: the intersection counts the smaller part, the union the larger. If one run
/// has query heads and the other KV heads, each KV head is compared with every query head of its group.
/// @throws std::invalid_argument if layers or tokens differ, or the numbers of rows are not multiples of each other
std::vector<double> run_overlap(const KeptSets& a, const KeptSets& b);

/// Returns run_overlap() of all layers together.
double run_overlap_total(const KeptSets& a, const KeptSets& b);

/// Returns (L): the Jaccard index of the tokens that at least one row of the layer keeps.
std::vector<double> run_token_overlap(const KeptSets& a, const KeptSets& b);

}  // namespace kvscope::analysis
