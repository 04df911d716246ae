#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/interface/scores.h"

namespace kvscope::policies {

/// Counts how many of the layer's R c best scores are in each row, and applies with_safeguard() to these counts.
[[nodiscard]] std::vector<int64_t> adaptive_budgets(const Scores<float>& scores, int rows, int64_t n_prefix,
                                                    int64_t n_tokens, int64_t c, double alpha);

/// Returns n_h (1 - alpha) + alpha c for each count n_h in `counts`. Rounding to integers preserves the sum R c.
[[nodiscard]] std::vector<int64_t> with_safeguard(std::vector<int64_t> counts, int64_t c, double alpha);

/// Multiplies each row's first n_prefix scores by the sum of the c largest of these scores, divided by the sum of all.
/// A row without a positive score stays unchanged.
void weigh_by_concentration(float* scores, int rows, int64_t n_prefix, int64_t row_stride, int64_t c);

}  // namespace kvscope::policies
