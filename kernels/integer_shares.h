#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvscope::kernels {

/// Splits `total` into integer shares in proportion to `weights` by largest remainder: floors of the quotas, then one
/// more for the largest fractional parts, ties to the lower index. Differences below 1e-9 count as ties, so rounding
/// errors of the weights do not matter.
/// With `caps`, no share exceeds its cap: the excess goes to the other shares in proportion to their weights, or
/// equally if all weights are zero, by the same rounding, until nothing is left. The sum is exactly `total`.
/// Throws std::invalid_argument for a negative total; weights that are negative, infinite or NaN, or all zero with a
/// total above 0; and caps with a sum below the total.
std::vector<int64_t> integer_shares(std::span<const double> weights, int64_t total, std::span<const int64_t> caps = {});

}  // namespace kvscope::kernels
