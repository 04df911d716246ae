#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/interface/scores.h"

namespace kvscope::policies {

/// Returns how many of a layer's R c best scores each row holds, mixed with the uniform share (with_safeguard()).
std::vector<int64_t> adaptive_budgets(const Scores<float>& scores, int rows, int64_t n_prefix, int64_t n_tokens,
                                      int64_t c, double alpha);

/// Returns n_h (1 - alpha) + alpha c per row as integer shares of R c, which is the sum of `counts`.
std::vector<int64_t> with_safeguard(std::vector<int64_t> counts, int64_t c, double alpha);

/// Multiplies each row's first n_prefix scores by the share of their sum that the c largest hold.
void weigh_by_concentration(float* scores, int rows, int64_t n_prefix, int64_t row_stride, int64_t c);

}  // namespace kvscope::policies
