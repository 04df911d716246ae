#pragma once

#include <cstdint>
#include <vector>

namespace kvscope::policies {

/// Returns PyramidKV's prefix entries per layer, from 2c - c / beta down to c / beta, with the sum L c. Needs c <=
/// n_prefix. `reference` rounds the step between layers down, so that the sum exceeds L c.
std::vector<int64_t> pyramid_budgets(int n_layers, int64_t c, int64_t n_prefix, double beta, bool reference);

}  // namespace kvscope::policies
