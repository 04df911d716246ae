#pragma once

#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// Returns the Jaccard index |A ∩ B| / |A ∪ B| of two ascending lists; 1 if both are empty.
[[nodiscard]] double jaccard(std::span<const uint32_t> a, std::span<const uint32_t> b);

/// Returns the Jaccard index of each pair of rows of a layer (L, R, R).
[[nodiscard]] std::vector<double> head_overlap(const KeptSets& kept);

/// Returns the Jaccard index of the entries of two runs on the same prompt, per layer (L). Each of n tokens in a
/// merged entry counts as 1/n. A KV head is compared with all query heads of its group.
/// @throws std::invalid_argument if layers, tokens or groups do not match
[[nodiscard]] std::vector<double> run_overlap(const KeptSets& a, const KeptSets& b);

/// Returns run_overlap() over all layers.
[[nodiscard]] double run_overlap_total(const KeptSets& a, const KeptSets& b);

/// Returns the Jaccard index of the tokens that at least one head of the layer keeps, per layer (L).
[[nodiscard]] std::vector<double> run_token_overlap(const KeptSets& a, const KeptSets& b);

}  // namespace kvscope::analysis
