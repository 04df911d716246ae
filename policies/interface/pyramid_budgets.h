#pragma once

#include <cstdint>
#include <vector>

namespace kvscope::policies {

/// Returns PyramidKV's prefix entries per layer, linearly decreasing from 2c - c / beta to c / beta, at most n_prefix,
/// as integers with the sum L c. `reference` rounds the step between layers down, so that the sum exceeds L c. Requires
/// c <= n_prefix.
std::vector<int64_t> pyramid_budgets(int n_layers, int64_t c, int64_t n_prefix, double beta, bool reference);

}  // namespace kvscope::policies
