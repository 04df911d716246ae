#pragma once

#include <cstdint>
#include <vector>

namespace kvscope::policies {

/// Returns PyramidKV's prefix entries per layer, linearly decreasing with mean c, as integer shares of exactly L c. The
/// last layer gets floor(c / beta), the first 2c minus that number, but at most n_prefix. `reference` rounds the step
/// between layers down and exceeds L c. Requires c <= n_prefix.
std::vector<int64_t> pyramid_budgets(int n_layers, int64_t c, int64_t n_prefix, double beta, bool reference);

}  // namespace kvscope::policies
