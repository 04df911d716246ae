#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/interface/scores.h"

namespace kvscope::policies {

/// Returns Ada-KV's budgets of R rows that share R c slots. First counts how many of the layer's R c best scores, among
/// the first n_prefix of each row of (R, n_tokens), each row holds. Then applies with_safeguard().
std::vector<int64_t> adaptive_budgets(const Scores<float>& scores, int rows, int64_t n_prefix, int64_t n_tokens,
                                      int64_t c, double alpha);

/// Returns n_h (1 - alpha) + alpha c per row as integer shares of R c, which is the sum of `counts`.
std::vector<int64_t> with_safeguard(std::vector<int64_t> counts, int64_t c, double alpha);

/// Multiplies each row's first n_prefix scores by the share of their sum that the c largest hold. Does not change rows
/// without a score above zero.
void weigh_by_concentration(float* scores, int rows, int64_t n_prefix, int64_t row_stride, int64_t c);

}  // namespace kvscope::policies
