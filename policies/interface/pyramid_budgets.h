#pragma once

#include <cstdint>
#include <vector>

namespace kvscope::policies {

/// Returns PyramidKV's prefix entries per layer, with mean c. The last layer gets floor(c / beta), the first 2c -
/// floor(c / beta), but at most n_prefix; the last layer then gets the number that keeps the mean. Layers in between
/// are linearly interpolated. The result is integer shares of exactly L c; `reference` rounds the step between layers
/// down instead and exceeds L c. Requires c <= n_prefix.
std::vector<int64_t> pyramid_budgets(int n_layers, int64_t c, int64_t n_prefix, double beta, bool reference);

}  // namespace kvscope::policies
