#pragma once

#include <cstdint>
#include <vector>

namespace kvscope::policies {

/// PyramidKV's prefix entries per layer around a mean of c: the last layer has floor(c / beta) of them, the first
/// 2c - floor(c / beta), but at most the n_prefix there are (then the last layer has what keeps the mean), and those
/// between lie on a line, as integer shares of exactly L c. `reference` floors the step between layers instead and
/// spends more. c <= n_prefix.
std::vector<int64_t> pyramid_budgets(int n_layers, int64_t c, int64_t n_prefix, double beta, bool reference);

}  // namespace kvscope::policies
