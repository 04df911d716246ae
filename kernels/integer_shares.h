#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvscope::kernels {

/// Splits `total` into integer shares in proportion to `weights` by largest remainder, ties (differences below 1e-9) to
/// the lower index. With `caps`, the excess over a cap goes to the other shares by the same rule, or equally if all
/// their weights are zero. The sum is exactly `total`.
/// Throws std::invalid_argument for a negative total; weights that are negative, infinite or NaN, or all zero with a
/// total above 0; and caps with a sum below the total.
[[nodiscard]] std::vector<int64_t> integer_shares(std::span<const double> weights, int64_t total,
                                                  std::span<const int64_t> caps = {});

}  // namespace kvscope::kernels
