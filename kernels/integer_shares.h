#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvscope::kernels {

/// Splits `total` into whole shares in proportion to `weights` (largest remainder): the floors of the exact quotas,
/// then the missing slots to the largest fractional parts, ties to the lower index. Quotas that differ from a whole
/// number, or fractional parts that differ from each other, by less than 1e-9 count as equal, so that the rounding of
/// the weights' arithmetic decides nothing.
///
/// With `caps` (one per weight) no share exceeds its cap: after rounding, what is cut off goes to the others in
/// proportion to their weights, rounded the same way (to those with room alike where all their weights are zero), until
/// nothing is cut off. The sum is exactly `total`.
/// @throws std::invalid_argument for a negative total, weights that are negative, not finite or all zero (with a total
///         above 0), or caps that together hold less than the total.
std::vector<int64_t> integer_shares(std::span<const double> weights, int64_t total, std::span<const int64_t> caps = {});

}  // namespace kvscope::kernels
