#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/interface/scores.h"

namespace kvscope::policies {

/// Ada-KV's shares of a layer's R c slots: how many of the R c best scores of all rows (R, n_tokens), among the first
/// n_prefix of each, fall into each row, mixed with the uniform share: n (1 - alpha) + alpha c, as integer shares.
std::vector<int64_t> adaptive_budgets(const Scores<float>& scores, int rows, int64_t n_prefix, int64_t n_tokens,
                                      int64_t c, double alpha);

/// n_h (1 - alpha) + alpha c as integer shares of R c, the sum of `counts`.
std::vector<int64_t> with_safeguard(std::vector<int64_t> counts, int64_t c, double alpha);

/// Multiplies each row's first n_prefix scores by the share of their sum that its c largest hold. A row without any
/// score above zero stays as it is.
void weigh_by_concentration(float* scores, int rows, int64_t n_prefix, int64_t row_stride, int64_t c);

}  // namespace kvscope::policies
