#pragma once

#include <cstdint>
#include <vector>

namespace kvscope::policies {

/// Returns PyramidKV's number of prefix entries in each layer, from 2c - c / beta down to c / beta with sum L c.
/// Requires c <= n_prefix. With `reference`, rounds the step between layers down, so that the sum exceeds L c.
[[nodiscard]] std::vector<int64_t> pyramid_budgets(int n_layers, int64_t c, int64_t n_prefix, double beta,
                                                   bool reference);

}  // namespace kvscope::policies
